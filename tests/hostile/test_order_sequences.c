/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of commands of several clients, while the daemon gives orders for them. The orders hold
 * the GPU behind their fences, suspend them, and move them to another device. The clients say when
 * they wait, wish for moves, and write over the word by which a move is agreed on:
 *
 *     test_hostile_order_sequences [SECONDS [SEED]]
 *
 * The server must live and the witness's sums be right. FUNNEL_TEST_VERBOSE prints each act.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client_class.h"
#include "clock.h"
#include "orders.h"
#include "region.h"
#include "sock.h"
#include "unit.h"

#define ACTORS 4u
#define POOL 4u
#define GRANULE (2u << 20)
#define ACTS_PER_CHECK 100u
#define ACTS_UNSETTLED 40u /* of a client, before it is brought to where its calls are answered */
#define SECONDS 2u
#define COPY_MAX 4096u
#define SPINS_MAX 20000u
#define BYTES_MAX 256u

struct actor {
    struct peer peer;
    bool attached;
    int32_t pid;
    uint32_t id, seq;
    unsigned unsettled; /* acts since it was last known to be served */
    uint64_t stream[POOL], address[POOL], module, spin;
};

static struct actor actors[ACTORS];
static uint64_t seed = 20261129, acts;
static unsigned seconds = SECONDS;

static uint32_t pick(uint32_t count)
{
    return (uint32_t)(unit_random(&seed) % count);
}

/* Mostly the client's own, at times another's. */
static uint64_t some_stream(const struct actor *actor)
{
    return (pick(8) ? actor : &actors[pick(ACTORS)])->stream[pick(POOL)];
}

static uint64_t some_address(const struct actor *actor)
{
    uint64_t own = actor->peer.offer.staging_address;

    return (pick(4) ? actor->address[pick(POOL)] : own) + 64 * pick(64);
}

/* Mostly that of the last fence. */
static uint32_t some_seq(const struct actor *actor)
{
    return pick(4) ? actor->seq : pick(2) ? actor->seq - pick(4) : (uint32_t)unit_random(&seed);
}

/* ---- the daemon ---- */

/* The server does not wait for a reader of what it says. */
static void drain(const struct daemon *daemon)
{
    union server_any message;
    size_t fds;

    do
        fds = 0;
    while (sock_recv(daemon->control, &message, sizeof(message), NULL, 0, &fds, 0) > 0);
}

static void write_word(struct actor *actor, uint32_t word)
{
    atomic_store(&actor->peer.channel.region->leave, word);
}

/* No order keeps the client from its work any more. */
static void settle(struct daemon *daemon, struct actor *actor)
{
    orders_send_move(daemon, actor->id, true);
    write_word(actor, LEAVE_NONE);
    orders_suspend(daemon, SERVER_SUSPEND_END, actor->pid);
    actor->unsettled = 0;
}

static void order_move(struct daemon *daemon, struct actor *actor)
{
    orders_send_move(daemon, actor->id, false);
}

static void withdraw_move(struct daemon *daemon, struct actor *actor)
{
    orders_send_move(daemon, actor->id, true);
}

static void order_suspension(struct daemon *daemon, struct actor *actor)
{
    static const enum server_suspend kinds[] = {SERVER_SUSPEND_END,    SERVER_SUSPEND_LEAVE,
                                                SERVER_SUSPEND_LEAVE,  SERVER_SUSPEND_SAVE,
                                                SERVER_SUSPEND_DETACH, SERVER_SUSPEND_LOCK};

    orders_send_suspend(daemon, kinds[pick(sizeof(kinds) / sizeof(*kinds))], actor->pid);
}

static void order_timeslice(struct daemon *daemon, struct actor *actor)
{
    struct server_set_timeslice order;

    server_message_init(&order, SERVER_SET_TIMESLICE, 0);
    order.us = 1000 * pick(4);
    order.beside_batch = pick(4) != 0;
    order.batch_has_share = pick(2);
    daemon_say(daemon, &order, NULL);
}

static void ask_status(struct daemon *daemon, struct actor *actor)
{
    orders_send_status(daemon);
}

/* ---- the client ---- */

static void make_stream(struct daemon *daemon, struct actor *actor)
{
    uint32_t i = pick(POOL);

    actor->stream[i] = peer_make_stream(&actor->peer, i + 1);
}

static void make_granule(struct daemon *daemon, struct actor *actor)
{
    peer_make_granule(&actor->peer, GRANULE, &actor->address[pick(POOL)]);
}

static void release_granule(struct daemon *daemon, struct actor *actor)
{
    const struct wire_fnGranuleRelease in = {.address = actor->address[pick(POOL)]};

    wire_fnGranuleRelease(&actor->peer.channel, &in);
}

static void launch(struct daemon *daemon, struct actor *actor)
{
    const uint32_t spins = pick(SPINS_MAX);
    const struct wire_cuLaunchKernelEx in = {.f = actor->spin,
                                             .shape = {1, 1, 1, 1, 1, 1},
                                             .hStream = some_stream(actor),
                                             .params = &spins,
                                             .params_size = sizeof(spins)};

    peer_launch(&actor->peer, &in);
}

static void copy(struct daemon *daemon, struct actor *actor)
{
    const struct wire_cuMemcpyAsync in = {.dst = some_address(actor),
                                          .src = some_address(actor),
                                          .ByteCount = pick(COPY_MAX),
                                          .hStream = some_stream(actor),
                                          .seq = ++actor->seq};

    wire_cuMemcpyAsync(&actor->peer.channel, &in);
}

static void fence(struct daemon *daemon, struct actor *actor)
{
    const struct wire_fnFence in = {.hStream = some_stream(actor), .seq = ++actor->seq};

    wire_fnFence(&actor->peer.channel, &in);
}

static void hold(struct daemon *daemon, struct actor *actor)
{
    const struct wire_fnHold in = {.hStream = some_stream(actor), .seq = some_seq(actor)};

    wire_fnHold(&actor->peer.channel, &in);
}

/* As a program that waits for each of its kernels. */
static void launch_and_hold(struct daemon *daemon, struct actor *actor)
{
    const uint32_t spins = SPINS_MAX;
    const struct wire_cuLaunchKernelEx kernel = {.f = actor->spin,
                                                 .shape = {1, 1, 1, 1, 1, 1},
                                                 .hStream = actor->stream[0],
                                                 .params = &spins,
                                                 .params_size = sizeof(spins)};
    const struct wire_fnFence behind = {.hStream = actor->stream[0], .seq = ++actor->seq};
    const struct wire_fnHold wait = {.hStream = actor->stream[0], .seq = actor->seq};

    if (peer_launch(&actor->peer, &kernel) && !wire_fnFence(&actor->peer.channel, &behind))
        wire_fnHold(&actor->peer.channel, &wait);
}

static void wake(struct daemon *daemon, struct actor *actor)
{
    const struct wire_fnWake in = {.hStream = some_stream(actor), .seq = some_seq(actor)};

    wire_fnWake(&actor->peer.channel, &in);
}

/* Away from long kernels, to a server that there is not, or to any. */
static void wish(struct daemon *daemon, struct actor *actor)
{
    const struct wire_fnMove in = {.handles = pick(8),
                                   .server = pick(3) ? 12345 * pick(2) : pick(UINT32_MAX)};

    wire_fnMove(&actor->peer.channel, &in);
}

static void write_some_word(struct daemon *daemon, struct actor *actor)
{
    uint32_t state = pick(9);

    write_word(actor, pick(8) ? state | (pick(4) ? 0 : pick(64) << LEAVE_OBSTACLE_SHIFT)
                              : (uint32_t)unit_random(&seed));
}

static void ask_to_leave(struct daemon *daemon, struct actor *actor)
{
    write_word(actor, LEAVE_ASKED);
}

static void change_part(struct daemon *daemon, struct actor *actor)
{
    const struct wire_fnDevicePart in = {pick(3), pick(3)};

    wire_fnDevicePart(&actor->peer.channel, &in);
}

static void arrive(struct daemon *daemon, struct actor *actor)
{
    const struct wire_fnGranulesAdopted in = {};

    wire_fnGranulesAdopted(&actor->peer.channel, &in);
}

static void nonsense(struct daemon *daemon, struct actor *actor)
{
    static const uint32_t kinds[] = {WIRE_fnHold, WIRE_fnWake, WIRE_fnFence, WIRE_fnDevicePart};
    unsigned char bytes[BYTES_MAX];

    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = pick(4) ? 0 : (unsigned char)pick(256);
    peer_send_raw(&actor->peer, kinds[pick(4)], bytes, 8 + 8 * pick(BYTES_MAX / 8));
}

static void leave(struct daemon *daemon, struct actor *actor)
{
    peer_leave(&actor->peer);
    actor->attached = false;
}

/* ---- sequences ---- */

static const struct {
    void (*act)(struct daemon *daemon, struct actor *actor);
    const char *name;
    unsigned weight;
    bool locked;   /* the caller of the wire's function holds the channel's lock */
    bool answered; /* waits for an answer of the server */
} kinds[] = {
    {order_move, "order to move", 3},
    {withdraw_move, "withdrawal", 2},
    {order_suspension, "order to suspend", 4},
    {order_timeslice, "order of time slices", 2},
    {ask_status, "status", 1},
    {make_stream, "stream", 3},
    {make_granule, "granule", 2, false, true},
    {release_granule, "release", 2, true},
    {launch, "launch", 12, true},
    {copy, "copy", 6, true},
    {fence, "fence", 8, true},
    {hold, "hold", 8, true},
    {launch_and_hold, "launch, fence and hold", 12, true},
    {wake, "wake", 2, true},
    {wish, "wish", 2, false, true},
    {write_some_word, "word", 4},
    {ask_to_leave, "request to leave", 3},
    {change_part, "part", 1, true},
    {arrive, "arrival", 1, true},
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

static void begin(struct daemon *daemon, struct actor *actor)
{
    const struct server_identity identity = {.pid = ORDERS_PID + (int32_t)(actor - actors),
                                             .uid = getuid()};

    memset(actor, 0, sizeof(*actor));
    actor->pid = identity.pid;
    assert_true(peer_adopt(&actor->peer, daemon_pass_on(daemon, &identity, 0, 10000)));
    actor->attached = true;
    actor->id = daemon->clients;
    for (unsigned i = 0; i < POOL; i++)
        actor->stream[i] = peer_make_stream(&actor->peer, i + 1);
    if (!peer_load_module(&actor->peer, witness_ptx, strlen(witness_ptx) + 1, &actor->module))
        peer_find_function(&actor->peer, actor->module, "spin", &actor->spin);
    make_granule(daemon, actor);
}

static void act(struct daemon *daemon, struct actor *actor)
{
    unsigned kind = pick_kind();

    if (actor->attached && !channel_alive(&actor->peer.channel))
        leave(daemon, actor);
    if (!actor->attached)
        begin(daemon, actor);
    if (kinds[kind].answered || ++actor->unsettled == ACTS_UNSETTLED)
        settle(daemon, actor);
    if (getenv("FUNNEL_TEST_VERBOSE"))
        fprintf(stderr, "%llu: client %ld: %s\n", (unsigned long long)acts, (long)(actor - actors),
                kinds[kind].name);
    if (kinds[kind].locked)
        channel_lock(&actor->peer.channel);
    kinds[kind].act(daemon, actor);
    if (kinds[kind].locked)
        channel_unlock(&actor->peer.channel);
    drain(daemon);
    acts++;
}

static void sequences_beside_orders(void **state)
{
    struct daemon *daemon = *state;
    uint64_t end = clock_ns() + seconds * NS_PER_SEC;

    daemon->class = CLASS_CRITICAL;
    while (clock_ns() < end) {
        for (unsigned i = 0; i < ACTS_PER_CHECK; i++)
            act(daemon, &actors[pick(ACTORS)]);
        assert_true(witness_is_well(&orders_witness));
    }
    for (unsigned i = 0; i < ACTORS; i++)
        if (actors[i].attached)
            leave(daemon, &actors[i]);
    fprintf(stderr, "%llu acts\n", (unsigned long long)acts);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sequences_beside_orders, orders_setup, orders_teardown)};

    seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : SECONDS;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : seed;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
