/* SPDX-License-Identifier: BSD-3-Clause */
/* Work that no request asks for: expiry, freeing, time-outs, samples. Each within a budget of time,
 * so that no client waits for it longer than for a slow command. */
#include "base/clock.h"
#include "base/log.h"
#include "base/watchdog.h"
#include "cmd/block.h"
#include "mem/account.h"
#include "server/server.h"

#define UPKEEP_PERIOD_MS 1
#define CRON_PERIOD_MS(s) (1000 / (s)->config.hz) /* hz is 1..500 */
#define UPKEEP_BUDGET_US 200
/* After so much was freed, account_decay is called with each upkeep for as long as it takes to have all
 * of it: twice the allocator's own delay. */
#define DECAY_WATCH_BYTES ((size_t)1 << 20)
#define DECAY_WATCH_MS 200
#define EXPIRE_KEYS_A_STEP 16
#define REAP_A_STEP 16
#define COMPACT_RECORDS_A_STEP 64
#define TEND_BUDGET_US 200
/* Clients looked at in one cron, for what they hold and for having been idle too long: all of them within
 * a second, and at least this many. */
#define TIMEOUT_CLIENTS_MIN 16

/* ---- upkeep -------------------------------------------------------------------------------- */

/* True while keys are due. */
static bool expire_some(struct server *s, int64_t deadline_us) {
    if (!s->dbs->active_expire) {
        return false;
    }
    for (size_t i = 0; i < s->dbs->count; i++) {
        while (db_expire_due(s->dbs->dbs[i], EXPIRE_KEYS_A_STEP)) {
            if (clock_monotonic_us() >= deadline_us) {
                return true;
            }
        }
    }
    return false;
}

/* True while there is something to free. */
static bool reap_some(struct server *s, int64_t deadline_us) {
    while (reaper_run(s->dbs, REAP_A_STEP)) {
        if (clock_monotonic_us() >= deadline_us) {
            return true;
        }
    }
    return false;
}

/* True while some database has records to move. */
static bool compact_some(struct server *s, int64_t deadline_us) {
    for (size_t i = 0; i < s->dbs->count; i++) {
        while (db_compact(s->dbs->dbs[i], COMPACT_RECORDS_A_STEP)) {
            if (clock_monotonic_us() >= deadline_us) {
                return true;
            }
        }
    }
    return false;
}

bool cron_has_freed(const struct server *s) {
    return account_freed_bytes() - s->freed_seen_bytes >= DECAY_WATCH_BYTES;
}

/* Freed memory goes back to the kernel in many small parts rather than all at the next cron. */
static void decay(struct server *s) {
    if (cron_has_freed(s)) {
        s->freed_seen_bytes = account_freed_bytes();
        s->decay_until_ms = loop_now_ms(s->loop) + DECAY_WATCH_MS;
    }
    account_decay();
}

/* The parts of upkeep, each with the microsecond of the budget at which it has to leave the rest to
 * those behind it. What is left in the end is for all, in turn. */
static struct upkeep_part {
    bool (*run)(struct server *s, int64_t deadline_us); /* true while there is more to do */
    enum latency_event event;
    int64_t until_us;
} const parts[] = {
    {expire_some, LATENCY_EXPIRE, UPKEEP_BUDGET_US / 2},
    {reap_some, LATENCY_REAP, UPKEEP_BUDGET_US * 3 / 4},
    {compact_some, LATENCY_COMPACT, UPKEEP_BUDGET_US},
};

static bool run_part(struct server *s, const struct upkeep_part *part, int64_t deadline_us) {
    uint64_t start = ticks_now();
    bool more = part->run(s, deadline_us);
    WATCHDOG_END(start, "upkeep", latency_event_name(part->event));
    context_note_latency(&s->cx, part->event, ticks_to_ns(ticks_now() - start));
    return more;
}

static void run_upkeep(struct server *s) {
    bool more[ARRAY_LEN(parts)], any = false;
    int64_t start_us = clock_monotonic_us();
    context_refresh_clock(&s->cx);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        more[i] = run_part(s, &parts[i], start_us + parts[i].until_us);
    }
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (more[i] && clock_monotonic_us() < start_us + UPKEEP_BUDGET_US) {
            more[i] = run_part(s, &parts[i], start_us + UPKEEP_BUDGET_US);
        }
        any |= more[i];
    }
    decay(s);
    if (any || loop_now_ms(s->loop) < s->decay_until_ms) {
        cron_poke(s);
    } else {
        loop_timer_stop(s->loop, &s->upkeep);
    }
}

static void fire_upkeep(struct loop *loop, struct loop_timer *timer) {
    (void)loop;
    run_upkeep(CONTAINER_OF(timer, struct server, upkeep));
}

static void start_upkeep(struct server *s, int64_t delay_ms) {
    if (!loop_timer_running(&s->upkeep)) {
        enum status st = loop_timer_start(s->loop, &s->upkeep, delay_ms, UPKEEP_PERIOD_MS);
        (void)st; /* without memory for a timer the next cron does it */
    }
}

void cron_poke(struct server *s) {
    start_upkeep(s, UPKEEP_PERIOD_MS);
}

/* A key that is due before the next cron is removed on time, not with it. */
static void watch_next_due(struct server *s) {
    int64_t next_ms = s->dbs->active_expire ? dbset_next_due_ms(s->dbs) : INT64_MAX;
    if (next_ms - s->cx.now_ms < CRON_PERIOD_MS(s)) {
        start_upkeep(s, next_ms < s->cx.now_ms ? 1 : next_ms - s->cx.now_ms + 1);
    }
}

/* ---- blocked clients ------------------------------------------------------------------------ */

void cron_watch_deadlines(struct server *s) {
    int64_t next_ms = block_expire(&s->cx);
    if (next_ms == s->deadline_ms || next_ms == INT64_MAX) {
        return;
    }
    int64_t delay_ms = next_ms - s->cx.now_ms;
    if (loop_timer_start(s->loop, &s->deadline, delay_ms > 0 ? delay_ms : 1, 0) == ST_OK) {
        s->deadline_ms = next_ms;
    }
}

static void fire_deadline(struct loop *loop, struct loop_timer *timer) {
    struct server *s = CONTAINER_OF(timer, struct server, deadline);
    (void)loop;
    s->deadline_ms = INT64_MAX;
    context_refresh_clock(&s->cx);
    cron_watch_deadlines(s);
}

/* ---- time-outs ----------------------------------------------------------------------------- */

/* A client that reads its replies is not idle, though it sends nothing. */
static void tend_client(struct server *s, struct client *c) {
    struct session *session = session_of(c);
    size_t unsent = conn_out_len(session->conn);
    if (unsent < session->seen_output_bytes) {
        c->last_active_ms = s->cx.now_ms;
    }
    session->seen_output_bytes = unsent;
    struct client_use use = {.memory_bytes = session_memory(session),
                             .query_max_bytes = session->in.len - session->in_used,
                             .output_max_bytes = unsent};
    client_note_use(&s->cx.clients, &use);
    int64_t limit_ms = (int64_t)s->config.timeout * 1000;
    if (limit_ms > 0 && c->waiter == NULL && s->cx.now_ms - c->last_active_ms > limit_ms) {
        log_verbose("Closing idle client id=%llu", (unsigned long long)c->id);
        conn_close(session->conn);
    } else {
        frontend_check_output(session);
    }
}

/* Some clients a turn: all of them within a second, unless they are too many for the time there is. */
static void tend_clients(struct server *s) {
    int64_t deadline_us = clock_monotonic_us() + TEND_BUDGET_US;
    size_t look_at = s->cx.clients.count / (size_t)s->config.hz;
    look_at = look_at < TIMEOUT_CLIENTS_MIN ? TIMEOUT_CLIENTS_MIN : look_at;
    look_at = look_at < s->cx.clients.count ? look_at : s->cx.clients.count;
    for (; look_at > 0; look_at--) {
        tend_client(s, client_take_turn(&s->cx.clients));
        if (look_at % TIMEOUT_CLIENTS_MIN == 0 && clock_monotonic_us() >= deadline_us) {
            return;
        }
    }
}

/* ---- cron ---------------------------------------------------------------------------------- */

static void sample(struct server *s) {
    rates_sample(&s->cx.rates, &s->metrics, clock_monotonic_us());
    context_sample_memory(&s->cx);
}

static void look_after_saves(struct server *s) {
    background_cron(&s->cx);
}

static const struct {
    const char *name;
    void (*run)(struct server *s);
} jobs[] = {
    {"upkeep", run_upkeep},       {"sample", sample},    {"saves", look_after_saves},
    {"next due", watch_next_due}, {"peers", peers_tend}, {"clients", tend_clients},
};

static void fire_cron(struct loop *loop, struct loop_timer *timer) {
    struct server *s = CONTAINER_OF(timer, struct server, cron);
    uint64_t start = ticks_now();
    (void)loop;
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        WATCHDOG_BEGIN(began);
        jobs[i].run(s);
        WATCHDOG_END(began, "cron", jobs[i].name);
    }
    context_note_latency(&s->cx, LATENCY_CRON, ticks_to_ns(ticks_now() - start));
}

enum status cron_setup(struct server *s) {
    s->cron.fire = fire_cron;
    s->upkeep.fire = fire_upkeep;
    s->deadline.fire = fire_deadline;
    s->deadline_ms = INT64_MAX;
    return loop_timer_start(s->loop, &s->cron, CRON_PERIOD_MS(s), CRON_PERIOD_MS(s));
}

void cron_teardown(struct server *s) {
    loop_timer_stop(s->loop, &s->cron);
    loop_timer_stop(s->loop, &s->upkeep);
    loop_timer_stop(s->loop, &s->deadline);
}
