/* SPDX-License-Identifier: BSD-3-Clause */
/* INFO lines computed from others. */
#include "row_priv.h"

#define SECONDS_A_DAY 86400

static union info_value ratio(uint64_t a, uint64_t b) {
    return (union info_value){.d = b == 0 ? 0 : (double)a / (double)b};
}

static union info_value difference(uint64_t a, uint64_t b) {
    return (union info_value){.i = (int64_t)(a - b)};
}

static uint64_t resident(const struct info_source *s) {
    return s->vm_rss_bytes + s->hugetlb_pages_bytes;
}

union info_value derived_arch_bits(const struct info_source *s) {
    return (union info_value){.u = sizeof(void *) * 8};
}

union info_value derived_uptime_days(const struct info_source *s) {
    return (union info_value){.u = s->uptime_in_seconds / SECONDS_A_DAY};
}

union info_value derived_configured_hz(const struct info_source *s) {
    return (union info_value){.u = s->hz};
}

union info_value derived_used_memory(const struct info_source *s) {
    return (union info_value){.u = s->used_memory};
}

union info_value derived_used_memory_peak(const struct info_source *s) {
    return (union info_value){.u = s->used_memory_peak};
}

union info_value derived_peak_perc(const struct info_source *s) {
    union info_value v = ratio(s->used_memory, s->used_memory_peak);
    v.d *= 100;
    return v;
}

union info_value derived_total_memory(const struct info_source *s) {
    return (union info_value){.u = s->total_system_memory};
}

union info_value derived_maxmemory(const struct info_source *s) {
    return (union info_value){.u = s->maxmemory};
}

union info_value derived_resident(const struct info_source *s) {
    return (union info_value){.u = resident(s)};
}

union info_value derived_footprint(const struct info_source *s) {
    return (union info_value){.u = resident(s) + s->page_table_bytes};
}

union info_value derived_allocator_frag(const struct info_source *s) {
    return ratio(s->allocator_active, s->allocator_allocated);
}

union info_value derived_allocator_frag_bytes(const struct info_source *s) {
    return difference(s->allocator_active, s->allocator_allocated);
}

union info_value derived_allocator_rss(const struct info_source *s) {
    return ratio(s->allocator_resident, s->allocator_active);
}

union info_value derived_allocator_rss_bytes(const struct info_source *s) {
    return difference(s->allocator_resident, s->allocator_active);
}

union info_value derived_frag(const struct info_source *s) {
    return ratio(resident(s), s->used_memory);
}

union info_value derived_frag_bytes(const struct info_source *s) {
    return difference(resident(s), s->used_memory);
}

union info_value derived_loaded_perc(const struct info_source *s) {
    union info_value v = ratio(s->loading_loaded_bytes, s->loading_total_bytes);
    v.d *= 100;
    return v;
}
