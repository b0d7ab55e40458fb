/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/loop.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/watchdog.h"

#define READY_MAX                                                                                  \
    512 /* events a wait: more stay ready for the next turn, since level-triggered                 \
         */
#define HEAP_START 16

struct loop {
    int epoll_fd;
    bool stopping;
    bool poked;
    struct loop_hooks hooks;
    int64_t woke_us;          /* when epoll_wait returned */
    struct loop_timer **heap; /* binary heap by due_ms; heap[0] is the earliest */
    size_t heap_len, heap_cap;
    struct loop_task *tasks, **tasks_end;
    int ready_len, ready_idx; /* events of the current wait, the one being handled */
    struct epoll_event ready[READY_MAX];
};

/* ---- timers: a binary heap whose members know their place ---- */

static void heap_put(struct loop *loop, size_t at, struct loop_timer *timer) {
    loop->heap[at] = timer;
    timer->heap_pos = at + 1;
}

static void heap_up(struct loop *loop, size_t at, struct loop_timer *timer) {
    while (at > 0) {
        size_t parent = (at - 1) / 2;
        if (loop->heap[parent]->due_ms <= timer->due_ms) {
            break;
        }
        heap_put(loop, at, loop->heap[parent]);
        at = parent;
    }
    heap_put(loop, at, timer);
}

static void heap_down(struct loop *loop, size_t at, struct loop_timer *timer) {
    for (;;) {
        size_t child = at * 2 + 1;
        if (child >= loop->heap_len) {
            break;
        }
        if (child + 1 < loop->heap_len &&
            loop->heap[child + 1]->due_ms < loop->heap[child]->due_ms) {
            child++;
        }
        if (timer->due_ms <= loop->heap[child]->due_ms) {
            break;
        }
        heap_put(loop, at, loop->heap[child]);
        at = child;
    }
    heap_put(loop, at, timer);
}

static void heap_replace(struct loop *loop, size_t at, struct loop_timer *timer) {
    if (at > 0 && timer->due_ms < loop->heap[(at - 1) / 2]->due_ms) {
        heap_up(loop, at, timer);
    } else {
        heap_down(loop, at, timer);
    }
}

void loop_timer_stop(struct loop *loop, struct loop_timer *timer) {
    if (timer->heap_pos == 0) {
        return;
    }
    size_t at = timer->heap_pos - 1;
    timer->heap_pos = 0;
    struct loop_timer *last = loop->heap[--loop->heap_len];
    if (last != timer) {
        heap_replace(loop, at, last);
    }
}

enum status loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t delay_ms,
                             int64_t period_ms) {
    loop_timer_stop(loop, timer);
    if (loop->heap_len == loop->heap_cap) {
        size_t cap = loop->heap_cap == 0 ? HEAP_START : loop->heap_cap * 2;
        struct loop_timer **heap = realloc(loop->heap, cap * sizeof(struct loop_timer *));
        if (heap == NULL) {
            return ST_NOMEM;
        }
        loop->heap = heap;
        loop->heap_cap = cap;
    }
    int64_t now_ms = clock_monotonic_us() / 1000;
    delay_ms = delay_ms < 0 ? 0 : delay_ms;
    timer->due_ms = delay_ms > INT64_MAX - now_ms ? INT64_MAX : now_ms + delay_ms;
    timer->period_ms = period_ms;
    heap_up(loop, loop->heap_len++, timer);
    return ST_OK;
}

/* Fire what is due now; a timer started meanwhile waits for the next turn at the least. */
static void fire_timers(struct loop *loop) {
    int64_t now_ms = loop_now_ms(loop);
    size_t budget = loop->heap_len;
    while (budget-- > 0 && loop->heap_len > 0 && loop->heap[0]->due_ms <= now_ms) {
        struct loop_timer *timer = loop->heap[0];
        if (timer->period_ms > 0) {
            int64_t next_ms = timer->due_ms + timer->period_ms;
            timer->due_ms = next_ms > now_ms ? next_ms : now_ms + timer->period_ms;
            heap_down(loop, 0, timer);
        } else {
            loop_timer_stop(loop, timer);
        }
        WATCHDOG_BEGIN(start);
        timer->fire(loop, timer);
        WATCHDOG_END(start, "timer", NULL);
    }
}

/* ---- descriptors ---- */

static enum status control(struct loop *loop, int op, struct loop_io *io, unsigned events) {
    struct epoll_event ev = {.data.ptr = io};
    ev.events = ((events & LOOP_READ) != 0 ? (uint32_t)EPOLLIN : 0) |
                ((events & LOOP_WRITE) != 0 ? (uint32_t)EPOLLOUT : 0);
    if (epoll_ctl(loop->epoll_fd, op, io->fd, &ev) != 0) {
        return ST_IO;
    }
    io->events = events;
    return ST_OK;
}

enum status loop_add(struct loop *loop, struct loop_io *io, int fd, unsigned events) {
    io->fd = fd;
    return control(loop, EPOLL_CTL_ADD, io, events);
}

enum status loop_modify(struct loop *loop, struct loop_io *io, unsigned events) {
    return io->events == events ? ST_OK : control(loop, EPOLL_CTL_MOD, io, events);
}

void loop_remove(struct loop *loop, struct loop_io *io) {
    struct epoll_event unused = {0};
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, io->fd, &unused);
    io->events = 0;
    for (int i = loop->ready_idx; i < loop->ready_len; i++) {
        if (loop->ready[i].data.ptr == io) {
            loop->ready[i].data.ptr = NULL;
        }
    }
}

static void call_ready(struct loop *loop) {
    for (loop->ready_idx = 0; loop->ready_idx < loop->ready_len; loop->ready_idx++) {
        struct epoll_event *ev = &loop->ready[loop->ready_idx];
        struct loop_io *io = ev->data.ptr;
        if (io == NULL) {
            continue;
        }
        unsigned events = ((ev->events & EPOLLIN) != 0 ? (unsigned)LOOP_READ : 0) |
                          ((ev->events & EPOLLOUT) != 0 ? (unsigned)LOOP_WRITE : 0) |
                          ((ev->events & (EPOLLERR | EPOLLHUP)) != 0 ? (unsigned)LOOP_FAILED : 0);
        events &= io->events | LOOP_FAILED; /* an earlier callback may have changed what is asked */
        if (events != 0) {
            WATCHDOG_BEGIN(start);
            io->ready(loop, io, events);
            WATCHDOG_END(start, "ready descriptor", NULL);
        }
    }
    loop->ready_len = 0;
}

/* ---- tasks ---- */

void loop_defer(struct loop *loop, struct loop_task *task) {
    if (task->queued) {
        return;
    }
    task->queued = true;
    task->next = NULL;
    *loop->tasks_end = task;
    loop->tasks_end = &task->next;
}

void loop_cancel(struct loop *loop, struct loop_task *task) {
    if (!task->queued) {
        return;
    }
    struct loop_task **at = &loop->tasks;
    while (*at != task) {
        at = &(*at)->next;
    }
    *at = task->next;
    if (task->next == NULL) {
        loop->tasks_end = at;
    }
    task->queued = false;
}

static void run_tasks(struct loop *loop) {
    struct loop_task *task;
    while ((task = loop->tasks) != NULL) {
        loop->tasks = task->next;
        if (task->next == NULL) {
            loop->tasks_end = &loop->tasks;
        }
        task->queued = false;
        WATCHDOG_BEGIN(start);
        task->run(loop, task);
        WATCHDOG_END(start, "deferred task", NULL);
    }
}

/* ---- the loop ---- */

struct loop *loop_create(struct loop_hooks hooks) {
    struct loop *loop = calloc(1, sizeof(*loop));
    if (loop == NULL) {
        return NULL;
    }
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0) {
        free(loop);
        return NULL;
    }
    loop->hooks = hooks;
    loop->tasks_end = &loop->tasks;
    loop->woke_us = clock_monotonic_us();
    return loop;
}

void loop_destroy(struct loop *loop) {
    if (loop == NULL) {
        return;
    }
    run_tasks(loop);
    close(loop->epoll_fd);
    free(loop->heap);
    free(loop);
}

/* How long epoll may sleep: up to the next timer, at most max_wait_ms (negative: no bound). */
static int sleep_ms(const struct loop *loop, int max_wait_ms) {
    if (loop->poked || loop->stopping) {
        return 0;
    }
    int64_t wait_ms = max_wait_ms < 0 ? INT64_MAX : max_wait_ms;
    if (loop->heap_len > 0) {
        /* clock_monotonic_us / 1000 rounds down, so sleeping to the millisecond is not short */
        int64_t until_ms = loop->heap[0]->due_ms - clock_monotonic_us() / 1000;
        until_ms = until_ms < 0 ? 0 : until_ms;
        wait_ms = until_ms < wait_ms ? until_ms : wait_ms;
    }
    return wait_ms == INT64_MAX ? -1 : wait_ms > INT_MAX ? INT_MAX : (int)wait_ms;
}

enum status loop_turn(struct loop *loop, int max_wait_ms) {
    if (loop->hooks.before_sleep != NULL) {
        loop->hooks.before_sleep(loop, loop->hooks.user);
    }
    run_tasks(loop);
    int timeout_ms = sleep_ms(loop, max_wait_ms);
    bool poked = loop->poked;
    loop->poked = false;
    int n = epoll_wait(loop->epoll_fd, loop->ready, READY_MAX, timeout_ms);
    loop->woke_us = clock_monotonic_us();
    WATCHDOG_TURN();
    if (n < 0 && errno != EINTR) {
        return ST_IO;
    }
    if (n > 0) {
        loop->ready_len = n;
        call_ready(loop);
    }
    if ((n > 0 || poked) && loop->hooks.after_ready != NULL) {
        loop->hooks.after_ready(loop, loop->hooks.user);
    }
    fire_timers(loop);
    return ST_OK;
}

enum status loop_run(struct loop *loop) {
    enum status st = ST_OK;
    while (!loop->stopping && st == ST_OK) {
        st = loop_turn(loop, -1);
    }
    loop->stopping = false;
    return st;
}

void loop_stop(struct loop *loop) {
    loop->stopping = true;
}

void loop_poke(struct loop *loop) {
    loop->poked = true;
}

int64_t loop_now_ms(const struct loop *loop) {
    return loop->woke_us / 1000;
}

int64_t loop_woke_us(const struct loop *loop) {
    return loop->woke_us;
}
