/* SPDX-License-Identifier: BSD-3-Clause */
#include "option_priv.h"

#include "base/log.h"

const char *const config_debug_words[] = {
    [CONFIG_DEBUG_NO] = "no", [CONFIG_DEBUG_YES] = "yes", [CONFIG_DEBUG_LOCAL] = "local", NULL};

const char *const config_index_words[] = {
    [CONFIG_INDEX_NO] = "no", [CONFIG_INDEX_THP] = "thp", [CONFIG_INDEX_HUGETLB] = "hugetlb", NULL};

const char *const config_policy_words[] = {[CONFIG_POLICY_NOEVICTION] = "noeviction", NULL};

const char *const config_loglevel_words[] = {
    [LOG_DEBUG] = "debug",     [LOG_VERBOSE] = "verbose", [LOG_NOTICE] = "notice",
    [LOG_WARNING] = "warning", [LOG_NOTHING] = "nothing", NULL};

const struct option config_table[CONFIG_OPTIONS] = {
#define OPTION(kind_, field_, name_, alias_, default_, min_, max_, unit_, words_, flags_, check_,  \
               help_)                                                                              \
    {.name = name_,                                                                                \
     .alias = alias_,                                                                              \
     .default_text = default_,                                                                     \
     .unit = unit_,                                                                                \
     .help = help_,                                                                                \
     .words = words_,                                                                              \
     .check = check_,                                                                              \
     .min = min_,                                                                                  \
     .max = max_,                                                                                  \
     .offset = offsetof(struct config, field_),                                                    \
     .size = sizeof(((struct config *)NULL)->field_),                                              \
     .kind = KIND_##kind_,                                                                         \
     .flags = flags_},
#include "config/options.def"
#undef OPTION
};

enum config_option_id option_find(struct bytes name) {
    for (enum config_option_id id = 0; id < CONFIG_OPTIONS; id++) {
        const struct option *o = &config_table[id];
        if (bytes_is(name, o->name) || (o->alias != NULL && bytes_is(name, o->alias))) {
            return id;
        }
    }
    return CONFIG_OPTIONS;
}

const char *config_option_name(enum config_option_id id) {
    return config_table[id].name;
}
