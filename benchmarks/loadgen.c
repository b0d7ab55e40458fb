/* SPDX-License-Identifier: BSD-3-Clause */
/* Load generator: one thread, epoll, many connections, each with one batch of pipelined requests
 * outstanding (a closed loop), or requests at a given rate (an open loop). Fills one hash or many
 * strings with data that follow from the item's number alone, then reads or writes random items and
 * checks every byte of every reply. Any other command can be sent too; then replies are checked for
 * errors and their elements are counted.
 *
 * It is cheap on purpose, so that what is measured is the server: the next batch of a connection is
 * built while the server works on the current one and sent before the replies are looked at
 * closely. It reports its own CPU time beside the server's, so that a reader sees which of the two
 * was the limit. One JSON object on standard output; messages go to standard error.
 *
 * Random numbers: xoshiro256** (base/rng.h). Latencies: log-linear histogram (base/histogram.h). */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "loadgen.h"

/* ---- options ------------------------------------------------------------------------------ */

static const char *const workload_names[] = {"load", "hget",  "hset",   "get",
                                             "set",  "mixed", "command"};

static const char usage_text[] =
    "usage: loadgen load [options]         fill one hash (or strings) with --fields items\n"
    "       loadgen run WORKLOAD [options] hget | hset | get | set | mixed (hget and hset)\n"
    "       loadgen run command --command 'ZADD z {score} m{seq}' [options]\n"
    "\n"
    "  --host ADDR          server's address (127.0.0.1)\n"
    "  --port N             server's port (6379)\n"
    "  --key NAME           the hash (bench:hash); its fields are field:%012d,\n"
    "                       string keys are key:%012d\n"
    "  --fields N           number of items (1000000)\n"
    "  --value-bytes N      length of each value (16)\n"
    "  --type hash|string   load: what to fill (hash)\n"
    "  --per-command N      load: items in one HSET or MSET (50)\n"
    "  --pipeline N         requests sent before waiting for replies (run 50, load 8)\n"
    "  --connections N      connections, each with one batch outstanding (run 16, load 4)\n"
    "  --seconds S          run: how long (5)\n"
    "  --ops N              run: stop after N requests instead of by time\n"
    "  --warmup S           run: the same traffic before the measured part, not counted (0)\n"
    "  --write-pct N        mixed: share of hset (10)\n"
    "  --rate R             run: an open loop, R requests a second at random times, those of\n"
    "                       one --pipeline together; latency counts from the time meant\n"
    "  --command WORDS      command: what to send; places: {id} a random item and {seq} the\n"
    "                       next one, 12 digits; {once} likewise, in a scattered order in\n"
    "                       which each comes once; {n} a random number below --fields, {n+K}\n"
    "                       the same and K; {score}, {score+K} likewise with a fraction;\n"
    "                       {value} --value-bytes bytes\n"
    "  --first N            command: where {seq} and {once} begin (0)\n"
    "  --series FILE        run: every batch's latency in order, 32-bit ns; one connection\n"
    "  --seed N             run: which random items (1)\n"
    "  --pid N              the server's process: report its CPU time\n"
    "  --cpu N              run on this CPU only\n"
    "  --progress           load: lines 'progress DONE TOTAL' on standard error\n"
    "\n"
    "Exit status: 0 good; 1 a wrong or missing reply; 2 bad options; 3 no connection.\n";

void die(enum exit_code code, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fputs("loadgen: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit((int)code);
}

static uint64_t parse_count(const char *name, const char *text, uint64_t least, uint64_t most) {
    uint64_t value;
    if (!number_parse_u64(bytes_from_cstr(text), &value) || value < least || value > most) {
        die(EXIT_USAGE, "--%s takes a number from %" PRIu64 " to %" PRIu64 ", not '%s'", name,
            least, most, text);
    }
    return value;
}

static double parse_seconds(const char *name, const char *text) {
    double value;
    if (!number_parse_double(bytes_from_cstr(text), &value) || !(value >= 0 && value <= 86400)) {
        die(EXIT_USAGE, "--%s takes seconds from 0 to 86400, not '%s'", name, text);
    }
    return value;
}

/* The words before the options: "load", or "run" and a workload. The number of words taken. */
static int parse_command(struct options *o, int argc, char **argv) {
    if (argc >= 2 && strcmp(argv[1], "load") == 0) {
        o->workload = WORK_LOAD;
        return 1;
    }
    if (argc >= 3 && strcmp(argv[1], "run") == 0) {
        for (size_t i = WORK_HGET; i < ARRAY_LEN(workload_names); i++) {
            if (strcmp(argv[2], workload_names[i]) == 0) {
                o->workload = (enum workload)i;
                return 2;
            }
        }
        die(EXIT_USAGE, "unknown workload '%s' (hget, hset, get, set, mixed or command)", argv[2]);
    }
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage_text, stdout);
        exit(0);
    }
    fputs(usage_text, stderr);
    exit(EXIT_USAGE);
}

static const struct option option_table[] = {
    {"host", required_argument, NULL, 'h'},        {"port", required_argument, NULL, 'p'},
    {"key", required_argument, NULL, 'k'},         {"fields", required_argument, NULL, 'f'},
    {"value-bytes", required_argument, NULL, 'v'}, {"type", required_argument, NULL, 't'},
    {"per-command", required_argument, NULL, 'n'}, {"pipeline", required_argument, NULL, 'P'},
    {"connections", required_argument, NULL, 'c'}, {"seconds", required_argument, NULL, 's'},
    {"ops", required_argument, NULL, 'o'},         {"warmup", required_argument, NULL, 'w'},
    {"write-pct", required_argument, NULL, 'm'},   {"seed", required_argument, NULL, 'S'},
    {"pid", required_argument, NULL, 'i'},         {"cpu", required_argument, NULL, 'u'},
    {"progress", no_argument, NULL, 'g'},          {"rate", required_argument, NULL, 'r'},
    {"command", required_argument, NULL, 'C'},     {"first", required_argument, NULL, 'F'},
    {"series", required_argument, NULL, 'e'},      {NULL, 0, NULL, 0},
};

/* An option that the workload would ignore is refused. */
static bool option_applies(const struct options *o, int letter) {
    bool load = o->workload == WORK_LOAD;
    bool strings = o->workload == WORK_GET || o->workload == WORK_SET;
    if (strchr("tng", letter) != NULL) {
        return load;
    }
    if (strchr("CF", letter) != NULL) {
        return o->workload == WORK_COMMAND;
    }
    if (strchr("sowSre", letter) != NULL) {
        return !load;
    }
    if (letter == 'm') {
        return o->workload == WORK_MIXED;
    }
    return letter != 'k' || (!strings && o->workload != WORK_COMMAND);
}

static void parse_option(struct options *o, int letter, const char *name, const char *arg) {
    switch (letter) {
    case 'h':
        o->host = arg;
        break;
    case 'p':
        parse_count(name, arg, 1, 65535);
        o->port = arg;
        break;
    case 'k':
        o->key = arg;
        o->key_given = true;
        break;
    case 'f':
        o->fields = parse_count(name, arg, 1, ID_MAX);
        break;
    case 'v':
        o->value_bytes = parse_count(name, arg, 0, VALUE_MAX_BYTES);
        break;
    case 't':
        o->strings = strcmp(arg, "string") == 0;
        if (!o->strings && strcmp(arg, "hash") != 0) {
            die(EXIT_USAGE, "--type is hash or string, not '%s'", arg);
        }
        break;
    case 'n':
        o->per_command = parse_count(name, arg, 1, 100000);
        break;
    case 'P':
        o->pipeline = parse_count(name, arg, 1, 100000);
        break;
    case 'c':
        o->connections = parse_count(name, arg, 1, 10000);
        break;
    case 's':
        o->seconds = parse_seconds(name, arg);
        break;
    case 'o':
        o->ops = parse_count(name, arg, 1, UINT64_MAX);
        break;
    case 'w':
        o->warmup_seconds = parse_seconds(name, arg);
        break;
    case 'm':
        o->write_pct = parse_count(name, arg, 0, 100);
        break;
    case 'S':
        o->seed = parse_count(name, arg, 0, UINT64_MAX);
        break;
    case 'i':
        o->pid = parse_count(name, arg, 1, INT32_MAX);
        break;
    case 'u':
        o->cpu = (int64_t)parse_count(name, arg, 0, CPU_SETSIZE - 1);
        break;
    case 'g':
        o->progress = true;
        break;
    case 'r':
        if (!number_parse_double(bytes_from_cstr(arg), &o->rate) ||
            !(o->rate >= 1 && o->rate <= 1e9)) {
            die(EXIT_USAGE, "--rate takes requests a second from 1 to 1e9, not '%s'", arg);
        }
        break;
    case 'C':
        o->command = arg;
        break;
    case 'F':
        o->first = parse_count(name, arg, 0, ID_MAX);
        break;
    case 'e':
        o->series = arg;
        break;
    default:
        die(EXIT_USAGE, "see loadgen --help");
    }
}

static void parse_options(struct options *o, int argc, char **argv) {
    int words = parse_command(o, argc, argv);
    bool load = o->workload == WORK_LOAD;
    o->pipeline = load ? 8 : 50;
    o->connections = load ? 4 : 16;
    argc -= words;
    argv += words;
    int letter;
    int idx = 0;
    while ((letter = getopt_long(argc, argv, "", option_table, &idx)) != -1) {
        if (letter == '?') {
            die(EXIT_USAGE, "see loadgen --help");
        }
        if (!option_applies(o, letter)) {
            die(EXIT_USAGE, "--%s has no meaning for '%s'", option_table[idx].name,
                workload_names[o->workload]);
        }
        parse_option(o, letter, option_table[idx].name, optarg);
    }
    if (o->strings && o->key_given) {
        die(EXIT_USAGE, "--key has no meaning for --type string");
    }
    if ((o->workload == WORK_COMMAND) != (o->command != NULL)) {
        die(EXIT_USAGE, "run command needs --command");
    }
    if (o->series != NULL && (o->connections != 1 || o->ops == 0)) {
        die(EXIT_USAGE, "--series needs --connections 1 and --ops");
    }
    if (optind < argc) {
        die(EXIT_USAGE, "unexpected argument '%s'", argv[optind]);
    }
}

/* ---- report -------------------------------------------------------------------------------- */

static double per(uint64_t amount, uint64_t count) {
    return count > 0 ? (double)amount / (double)count : 0.0;
}

static void print_cpu(const char *name, struct cpu_time t, uint64_t ops, double seconds) {
    uint64_t split = t.user_ns + t.sys_ns;
    double user_share = per(t.user_ns, split);
    double total = per(t.total_ns, ops);
    printf(", \"%s\": {\"cpu_ns_per_op\": %.1f, \"user_ns_per_op\": %.1f, \"sys_ns_per_op\": %.1f, "
           "\"cpu_share\": %.4f, \"cpu_ns\": %" PRIu64 ", \"user_accounted_ns\": %" PRIu64
           ", \"sys_accounted_ns\": %" PRIu64 ", \"source\": \"%s\"}",
           name, total, total * user_share, split > 0 ? total * (1.0 - user_share) : 0.0,
           (double)t.total_ns / (seconds * 1e9), t.total_ns, t.user_ns, t.sys_ns,
           t.exact ? "exact" : "ticks");
}

/* Where the curve of a distribution is drawn: from the median out into the tail. */
static void print_quantiles(const struct histogram *h) {
    static const double at[] = {0.001, 0.01,  0.05,   0.1,    0.2,    0.3,     0.4,     0.5,
                                0.6,   0.7,   0.8,    0.9,    0.95,   0.98,    0.99,    0.995,
                                0.998, 0.999, 0.9995, 0.9998, 0.9999, 0.99995, 0.99999, 1.0};
    printf(", \"quantiles_us\": [");
    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        printf("%s[%g, %.1f]", i > 0 ? ", " : "", at[i],
               (double)histogram_quantile(h, at[i]) / 1e3);
    }
    printf("]");
}

static void print_open(const struct options *o, const struct result *r) {
    printf(", \"rate\": %.1f, \"overrun\": %s, \"send_lag_us\": {\"p50\": %.1f, \"p99\": %.1f, "
           "\"max\": %.1f}",
           o->rate, r->overrun ? "true" : "false",
           (double)histogram_quantile(&r->lag_ns, 0.5) / 1e3,
           (double)histogram_quantile(&r->lag_ns, 0.99) / 1e3, (double)r->lag_ns.max / 1e3);
}

static void print_report(const struct options *o, const struct result *r, struct cpu_time client,
                         struct cpu_time server) {
    const struct histogram *h = &r->latency_ns;
    uint64_t ops = r->ops;
    double seconds = r->seconds;
    printf("{\"workload\": \"%s\", \"fields\": %" PRIu64 ", \"value_bytes\": %" PRIu64
           ", \"pipeline\": %" PRIu64 ", \"connections\": %" PRIu64 ", \"seed\": %" PRIu64,
           workload_names[o->workload], o->fields, o->value_bytes, o->pipeline, o->connections,
           o->seed);
    printf(", \"ops\": %" PRIu64
           ", \"seconds\": %.6f, \"ops_per_sec\": %.1f, \"new_items\": %" PRIu64,
           ops, seconds, (double)ops / seconds, r->new_items);
    printf(", \"batches\": %" PRIu64 ", \"batch_latency_us\": {\"p50\": %.1f, \"p99\": %.1f, "
           "\"p999\": %.1f, \"max\": %.1f}",
           h->count, (double)histogram_quantile(h, 0.5) / 1e3,
           (double)histogram_quantile(h, 0.99) / 1e3, (double)histogram_quantile(h, 0.999) / 1e3,
           (double)h->max / 1e3);
    print_quantiles(h);
    if (o->rate > 0) {
        print_open(o, r);
    }
    if (o->workload == WORK_COMMAND) {
        printf(", \"elements_per_op\": %.4f, \"nils_per_op\": %.4f", per(r->reply_elements, ops),
               per(r->reply_nils, ops));
    }
    print_cpu("client", client, ops, seconds);
    if (o->pid != 0) {
        print_cpu("server", server, ops, seconds);
    } else {
        printf(", \"server\": null");
    }
    printf("}\n");
}

static void series_init(const struct options *o, struct result *r) {
    r->series_cap = (size_t)(o->ops / o->pipeline + 1);
    r->series = calloc(r->series_cap, sizeof(*r->series));
    if (r->series == NULL) {
        die(EXIT_RUN_FAILED, "out of memory");
    }
}

static void series_write(const char *path, const struct result *r) {
    FILE *f = fopen(path, "wb");
    size_t written = f != NULL ? fwrite(r->series, sizeof(*r->series), r->series_len, f) : 0;
    if (f == NULL || written != r->series_len || fclose(f) != 0) {
        die(EXIT_RUN_FAILED, "--series %s: %s", path, strerror(errno));
    }
}

static void pin(int64_t cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0) {
        die(EXIT_USAGE, "--cpu %" PRId64 ": %s", cpu, strerror(errno));
    }
}

int main(int argc, char **argv) {
    struct options opt = {.host = "127.0.0.1",
                          .port = "6379",
                          .key = "bench:hash",
                          .fields = 1000000,
                          .value_bytes = 16,
                          .per_command = 50,
                          .write_pct = 10,
                          .seed = 1,
                          .cpu = -1,
                          .seconds = 5};
    parse_options(&opt, argc, argv);
    if (opt.cpu >= 0) {
        pin(opt.cpu);
    }
    struct result *result = calloc(1, sizeof(*result)); /* 36 KiB */
    if (result == NULL) {
        die(EXIT_RUN_FAILED, "out of memory");
    }
    struct engine *engine = engine_create(&opt);
    if (opt.warmup_seconds > 0) {
        engine_run(engine, UINT64_MAX, opt.warmup_seconds, result);
        *result = (struct result){0};
    }
    if (opt.series != NULL) {
        series_init(&opt, result);
    }
    struct cpu_time server = cpu_time_of(opt.pid);
    struct cpu_time client = cpu_time_own();
    bool by_count = opt.workload == WORK_LOAD || opt.ops > 0;
    engine_run(engine, by_count ? opt.ops : UINT64_MAX, by_count ? 0 : opt.seconds, result);
    client = cpu_time_since(cpu_time_own(), client);
    server = cpu_time_since(cpu_time_of(opt.pid), server);
    print_report(&opt, result, client, server);
    if (opt.series != NULL) {
        series_write(opt.series, result);
    }
    free(result->series);
    engine_destroy(engine);
    free(result);
    return 0;
}
