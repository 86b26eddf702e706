/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of valid and invalid commands from several clients, which use each other's addresses
 * and handles. They give back what is still in use, and leave in the middle:
 *
 *     test_hostile_sequences [SECONDS [SEED]]
 *     test_hostile_sequences --kept FILE         the seeds that are kept
 *     test_hostile_sequences --keep COUNT SEED   tries so many seeds, prints those to keep
 *
 * The server must live and the witness's sums be right. Each command is printed with
 * FUNNEL_TEST_VERBOSE, so that a seed can be followed. A seed is kept when its commands are
 * answered in ways, or follow each other in orders, that those before it did not show.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "cuda_flags.h"
#include "fd.h"
#include "hostile.h"

#define ACTORS 4u
#define POOL 8u
#define GRANULE (2u << 20)
#define COMMANDS_PER_CHECK 200u
#define SECONDS 5u
#define BYTES_MAX 256u
#define A_CONDITION 0x74000000000001u

/* The copies of two clients may meet. ThreadSanitizer takes milliseconds for each word where they
 * do, also when it is told to pass over that. */
#ifdef __SANITIZE_THREAD__
#define COPY_SHORT 64u
#define COPY_LONG 512u
#else
#define COPY_SHORT 4096u
#define COPY_LONG (2 * GRANULE)
#endif

/* Handles and addresses that a client has had, valid or not any more. */
struct actor {
    struct peer peer;
    bool attached;
    uint64_t stream[POOL], address[POOL], graph[POOL], module, function;
    uint32_t seq;
    bool waits; /* a stream of it may wait for a value */
};

static struct actor actors[ACTORS];
static uint64_t seed, commands;

static uint32_t pick(uint32_t count)
{
    return (uint32_t)(unit_random(&seed) % count);
}

/* Mostly the client's own, at times another's. */
static const struct actor *someone(const struct actor *actor)
{
    return pick(8) ? actor : &actors[pick(ACTORS)];
}

static uint64_t some_stream(const struct actor *actor)
{
    return someone(actor)->stream[pick(POOL)];
}

static uint64_t some_graph(const struct actor *actor)
{
    return someone(actor)->graph[pick(POOL)];
}

static uint64_t some_address(const struct actor *actor)
{
    uint64_t own = actor->peer.offer.staging_address;
    uint64_t address = pick(4) ? someone(actor)->address[pick(POOL)] : own;

    return address + (pick(4) ? 64 * pick(64) : pick(GRANULE + 64));
}

static void leave(struct actor *actor)
{
    peer_leave(&actor->peer);
    actor->attached = actor->waits = false;
}

/* A load waits for up to half a minute until no stream waits for a value. */
static void end_waits(void)
{
    for (unsigned i = 0; i < ACTORS; i++)
        if (actors[i].attached && actors[i].waits)
            leave(&actors[i]);
}

/* ---- commands; each sends one ---- */

static void make_stream(struct actor *actor)
{
    uint32_t i = pick(POOL);

    actor->stream[i] = peer_make_stream(&actor->peer, i + 1);
}

static void make_granule(struct actor *actor)
{
    peer_make_granule(&actor->peer, GRANULE, &actor->address[pick(POOL)]);
}

static void make_host_granule(struct actor *actor)
{
    _cleanup_fd_ int fd = -1;

    peer_make_host_granule(&actor->peer, GRANULE, &actor->address[pick(POOL)], &fd);
}

static void release_granule(struct actor *actor)
{
    const struct wire_fnGranuleRelease in = {.address = someone(actor)->address[pick(POOL)]};

    wire_fnGranuleRelease(&actor->peer.channel, &in);
}

static void move_granule(struct actor *actor)
{
    peer_move_granule(&actor->peer, someone(actor)->address[pick(POOL)], pick(2));
}

static void reserve(struct actor *actor)
{
    const struct wire_fnReserve in = {
        .from = pick(2) ? 0 : some_address(actor), .size = GRANULE, .alignment = GRANULE};
    struct wire_fnReserve_reply out = {0};

    if (wire_fnReserve(&actor->peer.channel, &in, &out) == CUDA_SUCCESS)
        actor->address[pick(POOL)] = out.address;
}

static void unreserve(struct actor *actor)
{
    const struct wire_fnUnreserve in = {.address = someone(actor)->address[pick(POOL)]};

    wire_fnUnreserve(&actor->peer.channel, &in);
}

static void copy(struct actor *actor)
{
    const struct wire_cuMemcpyAsync in = {.dst = some_address(actor),
                                          .src = some_address(actor),
                                          .ByteCount = pick(4) ? pick(COPY_SHORT) : pick(COPY_LONG),
                                          .hStream = some_stream(actor),
                                          .seq = ++actor->seq};

    wire_cuMemcpyAsync(&actor->peer.channel, &in);
}

static void wait_value(struct actor *actor)
{
    const struct wire_cuStreamWaitValue32_v2 in = {.hStream = some_stream(actor),
                                                   .addr = some_address(actor) & ~3ull,
                                                   .value = pick(4),
                                                   .flags = pick(4)};

    actor->waits = true;
    wire_cuStreamWaitValue32_v2(&actor->peer.channel, &in);
}

static void write_value(struct actor *actor)
{
    const struct wire_cuStreamWriteValue32_v2 in = {
        .hStream = some_stream(actor), .addr = some_address(actor) & ~3ull, .value = pick(4)};

    wire_cuStreamWriteValue32_v2(&actor->peer.channel, &in);
}

static void call_back(struct actor *actor)
{
    const struct wire_cuLaunchHostFunc in = {.hStream = some_stream(actor),
                                             .seq = ++actor->seq,
                                             .host_wait_word = pick(8),
                                             .host_wait_seq = pick(2) ? pick(3) : pick(UINT32_MAX)};

    actor->waits = true;
    wire_cuLaunchHostFunc(&actor->peer.channel, &in);
}

static void make_graph(struct actor *actor)
{
    const struct wire_fnGraphCreate in = {.graph = peer_handle(&actor->peer, WIRE_GRAPH),
                                          .nodes = 1 + pick(4)};

    actor->graph[pick(POOL)] = in.graph;
    wire_fnGraphCreate(&actor->peer.channel, &in);
}

static void add_kernel(struct actor *actor)
{
    const uint64_t params[8] = {pick(2) ? A_CONDITION : 0}; /* of no elements */
    const struct wire_fnGraphKernelNode in = {.graph = some_graph(actor),
                                              .f = someone(actor)->function,
                                              .node = pick(5),
                                              .shape = {1, 1, 1, 1, 1, 1},
                                              .params = (const void *)params,
                                              .params_size = pick(4) ? 64 : pick(64)};

    wire_fnGraphKernelNode(&actor->peer.channel, &in);
}

static void add_copy(struct actor *actor)
{
    const uint64_t width = 1 + pick(256);
    const struct wire_fnGraphCopyNode in = {.graph = some_graph(actor),
                                            .node = pick(5),
                                            .dst = some_address(actor),
                                            .src = some_address(actor),
                                            .dst_pitch = width,
                                            .src_pitch = width,
                                            .dst_height = 1,
                                            .src_height = 1,
                                            .width = width,
                                            .height = 1,
                                            .depth = 1};

    wire_fnGraphCopyNode(&actor->peer.channel, &in);
}

/* No loops: they would have no end. */
static void add_conditional(struct actor *actor)
{
    static const uint32_t kinds[] = {0, 2, 7};
    const uint32_t bodies[2] = {pick(3), pick(3)};
    const struct wire_fnGraphConditionalNode in = {.graph = some_graph(actor),
                                                   .node = pick(5),
                                                   .condition = A_CONDITION,
                                                   .kind = kinds[pick(3)],
                                                   .default_value = pick(3),
                                                   .flags = pick(3),
                                                   .bodies = (const void *)bodies,
                                                   .bodies_size = pick(4) ? 4 : 8};

    wire_fnGraphConditionalNode(&actor->peer.channel, &in);
}

static void add_edge(struct actor *actor)
{
    const uint32_t edge[2] = {pick(4), pick(5)};
    const struct wire_fnGraphEdges in = {
        .graph = some_graph(actor), .edges = edge, .edges_size = sizeof(edge)};

    wire_fnGraphEdges(&actor->peer.channel, &in);
}

static void instantiate(struct actor *actor)
{
    end_waits();
    if (!actor->attached)
        return;
    const struct wire_cuGraphInstantiateWithFlags in = {.graph = some_graph(actor),
                                                        .empty = pick(4)};

    wire_cuGraphInstantiateWithFlags(&actor->peer.channel, &in);
}

static void launch_graph(struct actor *actor)
{
    const struct wire_cuGraphLaunch in = {.graph = some_graph(actor),
                                          .hStream = some_stream(actor)};

    wire_cuGraphLaunch(&actor->peer.channel, &in);
}

static void destroy_graph(struct actor *actor)
{
    const struct wire_cuGraphExecDestroy in = {.graph = some_graph(actor)};

    wire_cuGraphExecDestroy(&actor->peer.channel, &in);
}

static void load_module(struct actor *actor)
{
    end_waits();
    if (!actor->attached)
        return;
    if (!peer_load_module(&actor->peer, witness_ptx, strlen(witness_ptx) + 1, &actor->module))
        peer_find_function(&actor->peer, actor->module, "vector_add", &actor->function);
}

static void unload_module(struct actor *actor)
{
    const struct wire_cuLibraryUnload in = {.library = someone(actor)->module};

    wire_cuLibraryUnload(&actor->peer.channel, &in);
}

static void fence(struct actor *actor)
{
    peer_fence(&actor->peer, some_stream(actor), ++actor->seq);
}

static void nonsense(struct actor *actor)
{
    unsigned char bytes[BYTES_MAX];

    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = pick(4) ? 0 : (unsigned char)pick(256);
    peer_send_raw(&actor->peer, pick(160), bytes, 8 + 8 * pick(BYTES_MAX / 8));
}

/* `locked`: the caller of the wire's function holds the channel's lock. */
static const struct {
    void (*act)(struct actor *actor);
    const char *name;
    unsigned weight;
    bool locked;
} kinds[] = {
    {make_stream, "stream", 4},
    {make_granule, "granule", 4},
    {make_host_granule, "host granule", 4},
    {release_granule, "release", 4, true},
    {move_granule, "move", 3},
    {reserve, "reserve", 2},
    {unreserve, "unreserve", 2, true},
    {copy, "copy", 16, true},
    {wait_value, "wait", 1, true},
    {write_value, "write", 8, true},
    {call_back, "host function", 1, true},
    {make_graph, "graph", 6, true},
    {add_kernel, "kernel node", 8, true},
    {add_copy, "copy node", 8, true},
    {add_conditional, "conditional node", 4, true},
    {add_edge, "edge", 4, true},
    {instantiate, "instantiate", 8},
    {launch_graph, "launch", 12, true},
    {destroy_graph, "destroy", 2, true},
    {load_module, "load", 2},
    {unload_module, "unload", 1, true},
    {fence, "fence", 4},
    {nonsense, "nonsense", 1},
    {leave, "leave", 1},
};

static unsigned pick_kind(void)
{
    unsigned total = 0, kind = 0;

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        total += kinds[i].weight;
    for (unsigned left = pick(total); left >= kinds[kind].weight; kind++)
        left -= kinds[kind].weight;
    return kind;
}

static void begin(struct actor *actor)
{
    memset(actor, 0, sizeof(*actor));
    end_waits();
    actor->attached = peer_attach(&actor->peer, hostile.server.socket);
    assert_true(actor->attached);
    for (unsigned i = 0; i < 3; i++)
        make_stream(actor);
    load_module(actor);
}

/* The kind of the command. */
static unsigned act(struct actor *actor)
{
    unsigned kind = pick_kind();

    if (actor->attached && !channel_alive(&actor->peer.channel))
        leave(actor);
    if (!actor->attached)
        begin(actor);
    if (!kinds[kind].locked && kinds[kind].act != leave)
        end_waits();
    if (!actor->attached)
        return kind;
    if (getenv("FUNNEL_TEST_VERBOSE"))
        fprintf(stderr, "%llu: client %ld: %s\n", (unsigned long long)commands,
                (long)(actor - actors), kinds[kind].name);
    if (kinds[kind].locked)
        channel_lock(&actor->peer.channel);
    kinds[kind].act(actor);
    if (kinds[kind].locked)
        channel_unlock(&actor->peer.channel);
    commands++;
    return kind;
}

static void leave_all(void)
{
    for (unsigned i = 0; i < ACTORS; i++)
        if (actors[i].attached)
            leave(&actors[i]);
}

static unsigned seconds = SECONDS;

static void sequences_of_commands(void **state)
{
    uint64_t end = clock_ns() + seconds * NS_PER_SEC;

    (void)state;
    while (clock_ns() < end) {
        for (unsigned i = 0; i < COMMANDS_PER_CHECK; i++)
            act(&actors[pick(ACTORS)]);
        end_waits();
        assert_int_equal(hostile_check(NULL), 0);
    }
    leave_all();
    fprintf(stderr, "%llu commands; workers of a pool served clients %lu times\n",
            (unsigned long long)commands,
            server_process_log_sum(&hostile.server, "with workers of the pool "));
}

/* ---- seeds that are kept ---- */

#define COMMANDS_PER_SEED 200u
#define KINDS_MAX 32u
#define STATUSES 1024u
#define NEWS_MIN 4u /* what a seed that is kept has to show */

/* By the kind of the client's command before, that of this one, and its status. */
_Static_assert(sizeof(kinds) / sizeof(*kinds) <= KINDS_MAX, "each kind has a row");
static bool shown[KINDS_MAX][KINDS_MAX][STATUSES];
static unsigned shown_count;
static const char *seeds_path;

/* What came of the client's commands so far, once they have been executed. */
static unsigned settle(struct actor *actor)
{
    const struct wire_cuMemGetInfo_v2 in = {0};
    struct wire_cuMemGetInfo_v2_reply out;

    if (!actor->attached || wire_cuMemGetInfo_v2(&actor->peer.channel, &in, &out))
        return STATUSES - 1;
    return (unsigned)channel_take_deferred_error(&actor->peer.channel) % STATUSES;
}

/* How much it showed that none before it did. */
static unsigned run_seed(uint64_t first)
{
    unsigned before[ACTORS] = {0}, known = shown_count;

    seed = first;
    for (unsigned i = 0; i < COMMANDS_PER_SEED; i++) {
        unsigned who = pick(ACTORS), kind = act(&actors[who]);
        bool *is_shown = &shown[before[who]][kind][settle(&actors[who])];

        shown_count += !*is_shown;
        *is_shown = true;
        before[who] = kind;
    }
    leave_all();
    assert_int_equal(hostile_check(NULL), 0);
    return shown_count - known;
}

/* The first number is how much the seeds show. Some of that depends on which thread comes first;
 * much less means that the commands have changed and other seeds are to be kept. */
static void kept_seeds(void **state)
{
    FILE *file = fopen(seeds_path, "r");
    uint64_t wanted = 0;
    char line[128];

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        uint64_t number = strtoull(line, NULL, 10);

        if (number && wanted)
            run_seed(number);
        wanted = wanted ? wanted : number;
    }
    fclose(file);
    fprintf(stderr, "%llu commands showed %u of %llu\n", (unsigned long long)commands, shown_count,
            (unsigned long long)wanted);
    assert_true(wanted && shown_count > wanted / 2);
}

static unsigned long seeds_tried;
static uint64_t seeds_from;

static void seeds_to_keep(void **state)
{
    unsigned long long kept[1024];
    unsigned count = 0;

    (void)state;
    for (unsigned long i = 0; i < seeds_tried && count < 1024; i++)
        if (run_seed(seeds_from + i) >= NEWS_MIN)
            kept[count++] = seeds_from + i;
    printf("%u\n", shown_count);
    for (unsigned i = 0; i < count; i++)
        printf("%llu\n", kept[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {HOSTILE_CASE(sequences_of_commands)};
    const struct CMUnitTest kept[] = {HOSTILE_CASE(kept_seeds)};
    const struct CMUnitTest to_keep[] = {HOSTILE_CASE(seeds_to_keep)};

    if (argc == 3 && !strcmp(argv[1], "--kept")) {
        seeds_path = argv[2];
        return HOSTILE_MAIN(kept);
    }
    if (argc == 4 && !strcmp(argv[1], "--keep")) {
        seeds_tried = strtoul(argv[2], NULL, 10);
        seeds_from = strtoull(argv[3], NULL, 10);
        return HOSTILE_MAIN(to_keep);
    }

    seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : SECONDS;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 20261122;
    return HOSTILE_MAIN(tests);
}
