/* SPDX-License-Identifier: BSD-3-Clause */
/* The event loop: one thread, epoll, level-triggered. One turn is
 *
 *     before_sleep    flush what the last turn left to be sent
 *     deferred tasks  free what was closed, until none is left
 *     epoll_wait      up to the next timer
 *     ready           each ready io's callback
 *     after_ready     once, if any was ready or loop_poke was called: the owner executes
 *                     the batch it gathered
 *     timers          those due
 *
 * Watchers, timers and tasks are embedded in their owners' structs: the loop allocates only its
 * timer heap, and an idle descriptor costs nothing a turn. All callbacks may add and remove
 * anything, themselves included; once an io is removed its callback is not called again, so its
 * memory may go at once. Not thread-safe. Signals: block them and watch a signalfd. */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include "base/compiler.h"
#include "base/status.h"

struct loop;

enum loop_events {
    LOOP_READ = 1,
    LOOP_WRITE = 2,
    LOOP_FAILED = 4 /* error or both sides closed: reported whether asked for or not */
};

/* A watched descriptor. Zero-initialise; the loop writes fd and events. */
struct loop_io {
    void (*ready)(struct loop *loop, struct loop_io *io, unsigned events);
    int fd;
    unsigned events; /* LOOP_READ, LOOP_WRITE: what is asked for */
};

/* A timer. Zero-initialised is stopped. */
struct loop_timer {
    void (*fire)(struct loop *loop, struct loop_timer *timer);
    int64_t due_ms;    /* loop time */
    int64_t period_ms; /* 0: once */
    size_t heap_pos;   /* 1-based place in the heap; 0: stopped */
};

/* Something to do once, before the loop sleeps again. Zero-initialised is not queued. */
struct loop_task {
    void (*run)(struct loop *loop, struct loop_task *task);
    struct loop_task *next;
    bool queued;
};

struct loop_hooks {
    void (*before_sleep)(struct loop *loop, void *user); /* may be NULL */
    void (*after_ready)(struct loop *loop, void *user);  /* may be NULL */
    void *user;
};

/* NULL when the kernel or memory refuses; errno says why. */
struct loop *loop_create(struct loop_hooks hooks);
void loop_destroy(struct loop *loop);

/* Watch fd. ST_IO with errno set when the kernel refuses. events may be 0: LOOP_FAILED only. */
MUST_CHECK enum status loop_add(struct loop *loop, struct loop_io *io, int fd, unsigned events);
/* Change what is asked for; no system call when nothing changes. */
MUST_CHECK enum status loop_modify(struct loop *loop, struct loop_io *io, unsigned events);
/* Stop watching; call before the descriptor is closed. */
void loop_remove(struct loop *loop, struct loop_io *io);

/* Fire after delay_ms, then every period_ms (0: once). A running timer is set anew. A period that
 * was missed is skipped, not made up for. O(log timers). */
MUST_CHECK enum status loop_timer_start(struct loop *loop, struct loop_timer *timer,
                                        int64_t delay_ms, int64_t period_ms);
void loop_timer_stop(struct loop *loop, struct loop_timer *timer);
static inline bool loop_timer_running(const struct loop_timer *timer) {
    return timer->heap_pos != 0;
}

/* Queue the task; a queued one stays where it is. A task may queue others. */
void loop_defer(struct loop *loop, struct loop_task *task);
/* Take a task out of the queue again, before its memory goes. */
void loop_cancel(struct loop *loop, struct loop_task *task);

/* Do not sleep in the next wait, and call after_ready behind it even when nothing was ready: there
 * is more to do than descriptors and timers tell. */
void loop_poke(struct loop *loop);

/* Monotonic milliseconds, read once a turn when epoll_wait returns. */
int64_t loop_now_ms(const struct loop *loop);

/* The same reading in microseconds: when this turn's work began. */
int64_t loop_woke_us(const struct loop *loop);

/* Turns until loop_stop (also one called before); a turn begun is finished. ST_IO when epoll fails.
 */
MUST_CHECK enum status loop_run(struct loop *loop);
/* One turn, sleeping at most max_wait_ms (negative: no bound). For tests and loading screens. */
MUST_CHECK enum status loop_turn(struct loop *loop, int max_wait_ms);
void loop_stop(struct loop *loop);

#endif
