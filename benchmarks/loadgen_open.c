/* SPDX-License-Identifier: BSD-3-Clause */
/* The open loop: batches become due at random times, whatever the server does meanwhile, as the
 * requests of many independent clients do. It spins rather than sleeps, since a timer on a virtual
 * machine wakes up later than a request takes; so its own CPU share says nothing, and whether it
 * kept up is read from how late it sent (result.lag_ns). */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "loadgen_priv.h"

#define OUTSTANDING_MAX 65536 /* batches; beyond it sending waits, which counts as latency */
#define OVERRUN_FACTOR 3.0    /* a run that takes so many times --seconds is given up */

/* Nanoseconds to the next arrival: exponentially distributed, of the given mean. */
static double next_gap_ns(struct rng *rng, double mean_ns) {
    double u = (double)(rng_next(rng) >> 11) * 0x1.0p-53; /* [0, 1) */
    return -log1p(-u) * mean_ns;
}

static struct batch *build(struct engine *e, double due_ns) {
    struct batch *b = batch_acquire(e);
    request_build(e, b);
    b->due_ns = (int64_t)due_ns;
    return b;
}

void open_loop(struct engine *e, int64_t start_ns) {
    const struct options *o = e->opt;
    double mean_ns = 1e9 * (double)o->pipeline / o->rate;
    double due_ns = (double)start_ns + next_gap_ns(&e->rng, mean_ns);
    int64_t limit_ns = e->deadline_ns == INT64_MAX
                           ? INT64_MAX
                           : start_ns + (int64_t)(o->seconds * 1e9 * OVERRUN_FACTOR);
    size_t turn = 0;
    struct batch *next = build(e, due_ns); /* built before it is due */
    while (next->item_count > 0 && next->due_ns < e->deadline_ns) {
        int64_t now_ns = clock_monotonic_ns();
        if (now_ns >= limit_ns) {
            e->result->overrun = true;
            break;
        }
        if (now_ns >= next->due_ns && e->outstanding < OUTSTANDING_MAX) {
            histogram_add(&e->result->lag_ns, (uint64_t)(now_ns - next->due_ns));
            conn_submit(e, &e->conns[turn++ % o->connections], next);
            due_ns += next_gap_ns(&e->rng, mean_ns);
            next = build(e, due_ns);
        }
        engine_poll(e, 0);
    }
    batch_release(e, next);
}
