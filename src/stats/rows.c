/* SPDX-License-Identifier: BSD-3-Clause */
#include "row_priv.h"

const struct info_row info_rows[] = {
#define COUNTER(section_, field_, unit_, help_)                                                    \
    {.name = #field_,                                                                              \
     .unit = unit_,                                                                                \
     .help = help_,                                                                                \
     .offset = offsetof(struct metrics, field_),                                                   \
     .section = INFO_##section_,                                                                   \
     .type = INFO_IS_UINT,                                                                         \
     .origin = ORIGIN_COUNTER},
#define GAUGE(section_, field_, unit_, help_)                                                      \
    {.name = #field_,                                                                              \
     .unit = unit_,                                                                                \
     .help = help_,                                                                                \
     .offset = offsetof(struct metrics, field_),                                                   \
     .section = INFO_##section_,                                                                   \
     .type = INFO_IS_UINT,                                                                         \
     .origin = ORIGIN_GAUGE},
#define VALUE(section_, type_, field_, unit_, help_)                                               \
    {.name = #field_,                                                                              \
     .unit = unit_,                                                                                \
     .help = help_,                                                                                \
     .offset = offsetof(struct info_source, field_),                                               \
     .section = INFO_##section_,                                                                   \
     .type = INFO_IS_##type_,                                                                      \
     .origin = ORIGIN_VALUE},
#define DERIVED(section_, type_, name_, function_, unit_, help_)                                   \
    {.name = #name_,                                                                               \
     .unit = unit_,                                                                                \
     .help = help_,                                                                                \
     .derive = function_,                                                                          \
     .section = INFO_##section_,                                                                   \
     .type = INFO_IS_##type_,                                                                      \
     .origin = ORIGIN_DERIVED},
#define FIXED(section_, name_, text_, help_)                                                       \
    {.name = #name_,                                                                               \
     .unit = "",                                                                                   \
     .help = help_,                                                                                \
     .text = text_,                                                                                \
     .section = INFO_##section_,                                                                   \
     .type = INFO_IS_TEXT,                                                                         \
     .origin = ORIGIN_FIXED},
#include "stats/metrics.def"
#undef COUNTER
#undef GAUGE
#undef VALUE
#undef DERIVED
#undef FIXED
};

const size_t info_row_count = ARRAY_LEN(info_rows);

const struct info_section_row info_section_rows[INFO_SECTIONS] = {
#define SECTION_ROW(id, word_, title_, is_default_)                                                \
    [INFO_##id] = {.word = word_, .title = title_, .is_default = is_default_},
    INFO_SECTION_MAP(SECTION_ROW)
#undef SECTION_ROW
};
