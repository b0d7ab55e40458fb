/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"

/* ---- timers ---- */

struct stamp {
    struct loop_timer timer;
    int id, fired;
    int64_t fired_ms;
};

static int last_id;
static bool in_order;

static void note(struct loop *loop, struct loop_timer *timer) {
    struct stamp *s = CONTAINER_OF(timer, struct stamp, timer);
    s->fired++;
    s->fired_ms = loop_now_ms(loop);
    in_order = in_order && s->id >= last_id;
    last_id = s->id;
}

static void timers_fire_in_order_and_not_early(void **state) {
    static const int delays_ms[] = {30, 0, 12, 5, 5, 20, 1};
    struct loop *loop = loop_create((struct loop_hooks){0});
    struct stamp stamps[ARRAY_LEN(delays_ms)] = {0};
    last_id = 0;
    in_order = true;
    int64_t start_ms = clock_monotonic_us() / 1000;
    for (size_t i = 0; i < ARRAY_LEN(stamps); i++) {
        stamps[i].timer.fire = note;
        stamps[i].id = delays_ms[i];
        assert_int_equal(loop_timer_start(loop, &stamps[i].timer, delays_ms[i], 0), ST_OK);
        assert_true(loop_timer_running(&stamps[i].timer));
    }
    while (loop_timer_running(&stamps[0].timer)) {
        assert_int_equal(loop_turn(loop, -1), ST_OK);
    }
    assert_true(in_order);
    for (size_t i = 0; i < ARRAY_LEN(stamps); i++) {
        assert_int_equal(stamps[i].fired, 1);
        assert_true(stamps[i].fired_ms - start_ms >= delays_ms[i]);
    }
    loop_destroy(loop);
}

static void stop_at_three(struct loop *loop, struct loop_timer *timer) {
    struct stamp *s = CONTAINER_OF(timer, struct stamp, timer);
    if (++s->fired == 3) {
        loop_timer_stop(loop, timer);
        loop_stop(loop);
    }
}

static void a_periodic_timer_repeats_until_stopped(void **state) {
    struct loop *loop = loop_create((struct loop_hooks){0});
    struct stamp s = {.timer.fire = stop_at_three};
    assert_int_equal(loop_timer_start(loop, &s.timer, 1, 2), ST_OK);
    assert_int_equal(loop_run(loop), ST_OK);
    assert_int_equal(s.fired, 3);
    assert_false(loop_timer_running(&s.timer));
    loop_destroy(loop);
}

static void missed_periods_are_not_made_up_for(void **state) {
    struct loop *loop = loop_create((struct loop_hooks){0});
    struct stamp s = {.timer.fire = note};
    assert_int_equal(loop_timer_start(loop, &s.timer, 1, 1), ST_OK);
    usleep(20000);
    assert_int_equal(loop_turn(loop, 0), ST_OK);
    assert_int_equal(loop_turn(loop, 0), ST_OK);
    assert_in_range(s.fired, 1, 3);
    loop_destroy(loop);
}

static void random_starts_and_stops_keep_the_heap(void **state) {
    struct loop *loop = loop_create((struct loop_hooks){0});
    struct stamp stamps[64] = {0};
    struct rng rng;
    rng_init(&rng, 7);
    for (size_t i = 0; i < ARRAY_LEN(stamps); i++) {
        stamps[i].timer.fire = note;
    }
    for (int i = 0; i < 5000; i++) {
        struct stamp *s = &stamps[rng_below(&rng, ARRAY_LEN(stamps))];
        if (rng_below(&rng, 3) == 0) {
            loop_timer_stop(loop, &s->timer);
        } else {
            int delay_ms = (int)rng_below(&rng, 40);
            assert_int_equal(loop_timer_start(loop, &s->timer, delay_ms, 0), ST_OK);
        }
    }
    size_t running = 0, fired = 0;
    int64_t latest_ms = 0;
    for (size_t i = 0; i < ARRAY_LEN(stamps); i++) {
        running += loop_timer_running(&stamps[i].timer);
        latest_ms = stamps[i].timer.due_ms > latest_ms ? stamps[i].timer.due_ms : latest_ms;
    }
    while (clock_monotonic_us() / 1000 <= latest_ms) {
        assert_int_equal(loop_turn(loop, 5), ST_OK);
    }
    assert_int_equal(loop_turn(loop, 0), ST_OK);
    for (size_t i = 0; i < ARRAY_LEN(stamps); i++) {
        fired += (size_t)stamps[i].fired;
        assert_false(loop_timer_running(&stamps[i].timer));
    }
    assert_int_equal(fired, running);
    loop_destroy(loop);
}

/* ---- descriptors ---- */

struct watched {
    struct loop_io io;
    struct watched *victim; /* removed by the first of the two that is called */
    int called;
    unsigned events;
};

static void on_ready(struct loop *loop, struct loop_io *io, unsigned events) {
    struct watched *w = CONTAINER_OF(io, struct watched, io);
    w->called++;
    w->events = events;
    if (w->victim != NULL) {
        loop_remove(loop, &w->victim->io);
        w->victim->victim = NULL;
    }
}

static void a_removed_io_is_not_called_in_the_same_turn(void **state) {
    struct loop *loop = loop_create((struct loop_hooks){0});
    int a[2], b[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, a), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, b), 0);
    struct watched wa = {.io.ready = on_ready}, wb = {.io.ready = on_ready, .victim = &wa};
    wa.victim = &wb;
    assert_int_equal(loop_add(loop, &wa.io, a[0], LOOP_READ), ST_OK);
    assert_int_equal(loop_add(loop, &wb.io, b[0], LOOP_READ), ST_OK);
    assert_int_equal(write(a[1], "x", 1), 1);
    assert_int_equal(write(b[1], "x", 1), 1);
    assert_int_equal(loop_turn(loop, 100), ST_OK);
    assert_int_equal(wa.called + wb.called, 1);
    loop_destroy(loop);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
}

static void events_are_level_triggered_and_as_asked(void **state) {
    struct loop *loop = loop_create((struct loop_hooks){0});
    int s[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    struct watched w = {.io.ready = on_ready};
    assert_int_equal(loop_add(loop, &w.io, s[0], LOOP_READ), ST_OK);
    assert_int_equal(loop_turn(loop, 0), ST_OK);
    assert_int_equal(w.called, 0);
    assert_int_equal(write(s[1], "x", 1), 1);
    assert_int_equal(loop_turn(loop, 0), ST_OK);
    assert_int_equal(loop_turn(loop, 0), ST_OK);
    assert_int_equal(w.called, 2);
    assert_int_equal(w.events, LOOP_READ);
    assert_int_equal(loop_modify(loop, &w.io, LOOP_WRITE), ST_OK);
    assert_int_equal(loop_turn(loop, 0), ST_OK);
    assert_int_equal(w.events, LOOP_WRITE);
    assert_int_equal(loop_modify(loop, &w.io, 0), ST_OK);
    close(s[1]);
    assert_int_equal(loop_turn(loop, 0), ST_OK);
    assert_int_equal(w.events, LOOP_FAILED);
    loop_remove(loop, &w.io);
    close(s[0]);
    loop_destroy(loop);
}

/* ---- hooks and tasks ---- */

static char trace[64];
static size_t trace_len;

static void mark(char c) {
    trace[trace_len++] = c;
    trace[trace_len] = '\0';
}

static void before_sleep(struct loop *loop, void *user) {
    mark('b');
}

static void after_ready(struct loop *loop, void *user) {
    mark('a');
}

static void ready_marks(struct loop *loop, struct loop_io *io, unsigned events) {
    mark('r');
}

static void task_marks(struct loop *loop, struct loop_task *task) {
    mark('t');
}

static void timer_marks(struct loop *loop, struct loop_timer *timer) {
    mark('m');
}

static void a_turn_goes_in_its_order(void **state) {
    struct loop *loop =
        loop_create((struct loop_hooks){.before_sleep = before_sleep, .after_ready = after_ready});
    trace_len = 0;
    int s[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    struct loop_io io = {.ready = ready_marks};
    struct loop_timer timer = {.fire = timer_marks};
    struct loop_task task = {.run = task_marks}, cancelled = {.run = task_marks};
    assert_int_equal(loop_add(loop, &io, s[0], LOOP_READ), ST_OK);
    assert_int_equal(write(s[1], "x", 1), 1);
    assert_int_equal(loop_timer_start(loop, &timer, 0, 0), ST_OK);
    loop_defer(loop, &task);
    loop_defer(loop, &task);
    loop_defer(loop, &cancelled);
    loop_cancel(loop, &cancelled);
    assert_int_equal(loop_turn(loop, -1), ST_OK);
    assert_string_equal(trace, "btram");
    loop_remove(loop, &io);
    trace_len = 0;
    assert_int_equal(loop_turn(loop, 0), ST_OK);
    assert_string_equal(trace, "b");
    loop_poke(loop);
    assert_int_equal(loop_turn(loop, -1), ST_OK); /* does not sleep */
    assert_string_equal(trace, "bba");
    close(s[0]);
    close(s[1]);
    loop_destroy(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_in_order_and_not_early),
        cmocka_unit_test(a_periodic_timer_repeats_until_stopped),
        cmocka_unit_test(missed_periods_are_not_made_up_for),
        cmocka_unit_test(random_starts_and_stops_keep_the_heap),
        cmocka_unit_test(a_removed_io_is_not_called_in_the_same_turn),
        cmocka_unit_test(events_are_level_triggered_and_as_asked),
        cmocka_unit_test(a_turn_goes_in_its_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
