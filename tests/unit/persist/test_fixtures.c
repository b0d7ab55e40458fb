/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of tests/data/rdb are read and hold what their texts say, which a redis-server wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

/* ---- what a file holds, as tests/data/make_rdb.py says it ------------------------------------- */

static void show(struct buf *out, struct bytes text) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:+";
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c != '\0' && strchr(plain, c) != NULL) {
            buf_append_char(out, c);
        } else {
            buf_printf(out, "%%%02X", (unsigned char)c);
        }
    }
}

struct words {
    char **ptr;
    size_t count, cap;
};

static void add_word(struct words *words, struct buf *word) {
    if (words->count == words->cap) {
        words->cap = words->cap * 2 + 16;
        words->ptr = realloc(words->ptr, words->cap * sizeof(*words->ptr));
        assert_non_null(words->ptr);
    }
    buf_append_char(word, '\0');
    assert_false(word->failed);
    words->ptr[words->count++] = word->ptr;
    *word = (struct buf){0};
}

static int compare_words(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Joined by a separator; the words are gone then. */
static void join(struct buf *out, struct words *words, bool sorted, char separator) {
    if (sorted && words->count != 0) {
        qsort(words->ptr, words->count, sizeof(*words->ptr), compare_words);
    }
    for (size_t i = 0; i < words->count; i++) {
        buf_append_char(out, separator);
        buf_append_cstr(out, words->ptr[i]);
        free(words->ptr[i]);
    }
    free(words->ptr);
    *words = (struct words){0};
}

static void show_hash(struct words *words, const struct value *v) {
    struct hash_pair pair;
    uint64_t position = 0;
    while (hash_next(v, &position, &pair, 1) != 0) {
        struct buf word = {0};
        show(&word, pair.field);
        buf_append_char(&word, '=');
        show(&word, pair.value);
        add_word(words, &word);
    }
}

static void show_set(struct words *words, const struct value *v) {
    struct bytes member;
    char scratch[SET_SCRATCH_LEN];
    uint64_t position = 0;
    while (set_next(v, &position, &member, 1, scratch) != 0) {
        struct buf word = {0};
        show(&word, member);
        add_word(words, &word);
    }
}

static void show_zset(struct words *words, const struct value *v) {
    struct zset_entry e;
    for (uint64_t rank = 0; zset_at(v, rank, &e); rank++) {
        struct buf word = {0};
        show(&word, e.member);
        buf_printf(&word, "=%.17g", e.score);
        add_word(words, &word);
    }
}

static void show_list(struct words *words, const struct value *v) {
    struct bytes element;
    for (uint64_t i = 0; list_at(v, i, &element); i++) {
        struct buf word = {0};
        show(&word, element);
        add_word(words, &word);
    }
}

static void show_string(struct words *words, const struct value *v) {
    char scratch[STRING_SCRATCH_LEN];
    struct buf word = {0};
    show(&word, string_text(v, scratch));
    add_word(words, &word);
}

struct describing {
    struct words lines;
    size_t db;
};

static void show_key(void *arg, struct entry *e) {
    static void (*const show_value[])(struct words *, const struct value *) = {
        [VALUE_STRING] = show_string, [VALUE_LIST] = show_list, [VALUE_SET] = show_set,
        [VALUE_ZSET] = show_zset,     [VALUE_HASH] = show_hash,
    };
    struct describing *d = arg;
    struct buf line = {0};
    struct words words = {0};
    buf_printf(&line, "%zu ", d->db);
    show(&line, e->key);
    buf_printf(&line, " %lld %s", e->expire_ms == DB_NO_EXPIRY ? -1LL : (long long)e->expire_ms,
               value_type_name(e->value.type));
    show_value[e->value.type](&words, &e->value);
    join(&line, &words, e->value.type == VALUE_SET || e->value.type == VALUE_HASH, ' ');
    add_word(&d->lines, &line);
}

static void describe(struct store *s, struct buf *out) {
    struct describing d = {0};
    for (d.db = 0; d.db < DATABASES; d.db++) {
        db_each(s->set->dbs[d.db], show_key, &d);
    }
    join(out, &d.lines, true, '\n');
    buf_append_char(out, '\n');
    buf_consume(out, 1);
}

/* ---- the files ------------------------------------------------------------------------------ */

static struct bytes fixture(const char *name, const char *suffix) {
    static const char here[] = __FILE__;
    char path[4096];
    size_t folder_len = sizeof(here) - sizeof("unit/persist/test_fixtures.c");
    snprintf(path, sizeof(path), "%.*sdata/rdb/%s%s", (int)folder_len, here, name, suffix);
    return read_file(path);
}

static void assert_holds(struct store *s, const char *name) {
    struct bytes expected = fixture(name, ".txt");
    struct buf text = {0};
    describe(s, &text);
    size_t same = 0;
    while (same < text.len && same < expected.len && text.ptr[same] == expected.ptr[same]) {
        same++;
    }
    if (same != text.len || same != expected.len) {
        fail_msg("%s differs at %zu:\n%.100s\nis not\n%.100s", name, same,
                 text.ptr + (same > 40 ? same - 40 : 0),
                 expected.ptr + (same > 40 ? same - 40 : 0));
    }
    free((void *)(uintptr_t)expected.ptr);
    buf_deinit(&text);
}

static void read_and_compare(const char *name) {
    struct store s, again;
    struct reader_report report;
    struct bytes file = fixture(name, ".rdb");
    struct buf ours = {0};
    store_create(&s);
    enum status st = read_bytes_into(&s, file, SIZE_MAX, true, NULL, &report);
    if (st != ST_OK) {
        fail_msg("%s: %s", name, report.error);
    }
    assert_int_equal(report.bytes, file.len);
    assert_holds(&s, name);
    write_store(&s, true, &ours);
    store_create(&again);
    read_store(&again, buf_bytes(&ours), &report);
    assert_holds(&again, name);
    store_destroy(&again);
    buf_deinit(&ours);
    store_destroy(&s);
    free((void *)(uintptr_t)file.ptr);
}

static void files_hold_what_their_texts_say(void **state) {
    static const char *const names[] = {
        "old_1",     "old_2",     "old_4",         "old_6",       "old_6_no_checksum",
        "old_7",     "old_9",     "saved_default", "saved_plain", "saved_packed",
        "saved_lfu", "saved_lru", "new_11",        "new_12",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        read_and_compare(names[i]);
    }
    assert_int_equal(total_bytes(), 0);
}

static int64_t idle_of(struct store *s, struct bytes key) {
    struct entry e;
    assert_true(db_find(s->set->dbs[0], key, hash_bytes(key), DB_NO_TOUCH, &e));
    return entry_idle_seconds(&e);
}

static void idle_times_come_along(void **state) {
    struct store s;
    struct reader_report report;
    struct bytes file = fixture("old_9", ".rdb");
    store_create(&s);
    assert_int_equal(read_bytes_into(&s, file, SIZE_MAX, true, NULL, &report), ST_OK);
    assert_int_equal(idle_of(&s, BYTES_LIT("idle")), 1000);
    assert_int_equal(idle_of(&s, BYTES_LIT("frequent")), 0);
    store_destroy(&s);
    free((void *)(uintptr_t)file.ptr);
}

static void what_is_not_built_is_refused_by_name_or_skipped(void **state) {
    struct store s;
    struct reader_report report;
    struct reader_options skip = {.now_ms = NOW, .skip_unsupported = true};
    struct bytes file = fixture("unsupported", ".rdb");
    store_create(&s);
    assert_int_equal(read_bytes_into(&s, file, SIZE_MAX, true, NULL, &report), ST_UNSUPPORTED);
    assert_non_null(strstr(report.error, "mylib"));
    store_destroy(&s);
    store_create(&s);
    assert_int_equal(read_bytes_into(&s, file, 1000, false, &skip, &report), ST_OK);
    assert_int_equal(report.skipped_functions, 1);
    assert_int_equal(report.skipped_streams, 2);
    assert_int_equal(report.keys, 2);
    assert_true(report.checksum_compared);
    assert_holds(&s, "unsupported");
    store_destroy(&s);
    free((void *)(uintptr_t)file.ptr);
    assert_int_equal(total_bytes(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_hold_what_their_texts_say),
        cmocka_unit_test(idle_times_come_along),
        cmocka_unit_test(what_is_not_built_is_refused_by_name_or_skipped),
    };
    hash_setup_seed(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
