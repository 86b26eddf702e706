/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that want more than their memory limit: they give memory back and keep its descriptor.
 * And clients whose streams wait while others want to load code.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "cuda_abi.h"
#include "cuda_flags.h"
#include "fd.h"
#include "hostile.h"

#define LIMIT (64ull << 20)
#define GRANULE (16ull << 20)
#define ROUNDS 48u

static void attach_with_limit(struct peer *peer)
{
    struct hello hello = peer_hello();

    hello.memory_limit[0] = LIMIT;
    assert_true(peer_attach_as(peer, hostile.server.socket, &hello));
}

static uint64_t free_for(struct peer *peer)
{
    const struct wire_cuMemGetInfo_v2 in = {.device = 0};
    struct wire_cuMemGetInfo_v2_reply out = {0};

    assert_int_equal(wire_cuMemGetInfo_v2(&peer->channel, &in, &out), CUDA_SUCCESS);
    return out.free;
}

static void release(struct peer *peer, uint64_t address)
{
    const struct wire_fnGranuleRelease in = {.address = address};

    channel_lock(&peer->channel);
    wire_fnGranuleRelease(&peer->channel, &in);
    channel_unlock(&peer->channel);
}

/* The client may go on as long as it likes, but what it can keep is bounded. */
static void granules_whose_descriptor_was_kept(void **state)
{
    int kept[ROUNDS];
    unsigned count = 0;
    struct peer peer;

    attach_with_limit(&peer);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t address;
        int fd = -1;

        assert_int_equal(peer_take_granule(&peer, GRANULE, &address, &fd), CUDA_SUCCESS);
        if (fd >= 0)
            kept[count++] = fd;
        release(&peer, address);
        assert_int_equal(free_for(&peer), LIMIT);
    }
    assert_int_equal(count, LIMIT / GRANULE);
    while (count)
        fd_close(&kept[--count]);
    peer_leave(&peer);
}

/* The limit itself holds whether there are descriptors or not. */
static void more_than_the_limit_at_a_time(void **state)
{
    uint64_t address[LIMIT / GRANULE], refused;
    struct peer peer;

    attach_with_limit(&peer);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < LIMIT / GRANULE; i++)
            assert_int_equal(peer_make_granule(&peer, GRANULE, &address[i]), CUDA_SUCCESS);
        assert_int_equal(peer_make_granule(&peer, GRANULE, &refused), CUDA_ERROR_OUT_OF_MEMORY);
        for (unsigned i = 0; i < LIMIT / GRANULE; i++)
            release(&peer, address[i]);
    }
    peer_leave(&peer);
}

static CUresult allocate_and_export(struct peer *peer, uint64_t *ret_handle)
{
    const struct wire_cuMemCreate make = {.handle = peer_handle(peer, WIRE_ALLOCATION),
                                          .size = GRANULE};
    const struct wire_cuMemExportToShareableHandle export = {.handle = make.handle};

    *ret_handle = make.handle;
    assert_int_equal(wire_cuMemCreate(&peer->channel, &make), CUDA_SUCCESS);
    return wire_cuMemExportToShareableHandle(&peer->channel, &export);
}

/* The same with physical memory that the program itself exports. */
static void allocations_that_were_exported(void **state)
{
    unsigned exported = 0;
    struct peer peer;

    attach_with_limit(&peer);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct wire_cuMemRelease end;

        exported += allocate_and_export(&peer, &end.handle) == CUDA_SUCCESS;
        assert_int_equal(wire_cuMemRelease(&peer.channel, &end), CUDA_SUCCESS);
    }
    assert_int_equal(exported, LIMIT / GRANULE);
    peer_leave(&peer);
}

/* A module with a variable of 48 MiB. */
static const char large_ptx[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                                ".visible .global .align 4 .b8 large[50331648];\n"
                                ".visible .entry fine()\n{\nret;\n}\n";

static CUresult unload(struct peer *peer, uint64_t module)
{
    const struct wire_cuLibraryUnload in = {.library = module};

    return wire_cuLibraryUnload(&peer->channel, &in);
}

static void variables_of_modules(void **state)
{
    uint64_t module, second, address;
    struct peer peer;

    attach_with_limit(&peer);
    assert_int_equal(peer_load_module(&peer, large_ptx, sizeof(large_ptx), &module), CUDA_SUCCESS);
    assert_int_equal(free_for(&peer), LIMIT - (48ull << 20));
    assert_int_equal(peer_make_granule(&peer, 2 * GRANULE, &address), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(peer_load_module(&peer, large_ptx, sizeof(large_ptx), &second),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(unload(&peer, module), CUDA_SUCCESS);
    assert_int_equal(free_for(&peer), LIMIT);
    peer_leave(&peer);
}

/* A module that declares so much, in words that are not the plainest ones. */
static CUresult load_declaring(struct peer *peer, const char *declaration, uint64_t *ret_module)
{
    static unsigned number;
    char text[512];

    snprintf(text, sizeof(text),
             ".version 8.0\n.target sm_75\n.address_size 64\n%s\n// %u\n"
             ".visible .entry fine()\n{\nret;\n}\n",
             declaration, ++number);
    return peer_load_module(peer, text, strlen(text) + 1, ret_module);
}

static void variables_however_they_are_written(void **state)
{
    static const char *const declarations[] = {
        ".global .b8 a[5000*20000];",        ".global .b8 a[0x5f5e100];",
        ".global .b8 a[/* 4 */ 100000000];", ".global .b8 a[4], b[100000000];",
        ".visible.global .b8 a[100000000];", ".pragma \"nounroll\"; .global .b8 a[100000000];",
        ".global .b8 $str$a[100000000];",
    };
    uint64_t module;
    struct peer peer;

    attach_with_limit(&peer);
    for (unsigned i = 0; i < sizeof(declarations) / sizeof(*declarations); i++) {
        assert_int_equal(load_declaring(&peer, declarations[i], &module), CUDA_ERROR_OUT_OF_MEMORY);
        assert_int_equal(free_for(&peer), LIMIT);
    }
    assert_int_equal(load_declaring(&peer, ".global .b8 a[0x2000000];", &module), CUDA_SUCCESS);
    assert_int_equal(free_for(&peer), LIMIT - 0x2000000);
    peer_leave(&peer);
}

/* They have never been the client's, and take nothing from others. */
static void loads_that_were_refused_leave_nothing(void **state)
{
    uint64_t module, address;
    struct peer peer, other;

    attach_with_limit(&peer);
    assert_true(peer_attach(&other, hostile.server.socket));
    const uint64_t before = free_for(&other);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(load_declaring(&peer, ".global .b8 a[0x6000000];", &module),
                         CUDA_ERROR_OUT_OF_MEMORY);
    assert_true(free_for(&other) >= before);
    assert_int_equal(peer_make_granule(&other, GRANULE, &address), CUDA_SUCCESS);
    peer_leave(&other);
    peer_leave(&peer);
}

/* The client gives its modules up while it goes on. */
static void modules_that_were_unloaded_leave_nothing(void **state)
{
    uint64_t module, function;
    struct peer peer, other;

    attach_with_limit(&peer);
    assert_true(peer_attach(&other, hostile.server.socket));
    for (unsigned i = 0; i < 60; i++) {
        assert_int_equal(load_declaring(&peer, ".global .b8 a[0x1800000];", &module), CUDA_SUCCESS);
        assert_int_equal(peer_find_function(&peer, module, "fine", &function), CUDA_SUCCESS);
        assert_int_equal(unload(&peer, module), CUDA_SUCCESS);
    }
    assert_int_equal(peer_make_granule(&other, 40 * GRANULE, &module), CUDA_SUCCESS);
    peer_leave(&other);
    peer_leave(&peer);
}

/* The end of another client's session takes time on a busy machine. */
static bool can_have_granule(struct peer *peer)
{
    uint64_t address;

    for (unsigned waited = 0; waited < TIMEOUT_MS; waited += 10) {
        if (peer_make_granule(peer, GRANULE, &address) == CUDA_SUCCESS)
            return true;
        usleep(10000);
    }
    return false;
}

static unsigned take_all_granules(struct peer *peer)
{
    uint64_t address;
    unsigned count = 0;

    while (peer_make_granule(peer, GRANULE, &address) == CUDA_SUCCESS)
        count++;
    return count;
}

/* Libraries that no client uses any more, of eight granules, are unloaded when another client wants
 * the memory. The server may unload them earlier, when it is idle, so the client's share counts. */
static void idle_libraries_give_way(void **state)
{
    uint64_t module, function, before = free_memory();
    struct peer first, peer, other;

    assert_true(peer_attach(&first, hostile.server.socket));
    const unsigned all = take_all_granules(&first);
    peer_leave(&first);
    assert_true(free_memory_comes_back_to(before));
    assert_true(peer_attach(&peer, hostile.server.socket));
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(load_declaring(&peer, ".global .b8 a[0x1f00000];", &module), CUDA_SUCCESS);
        assert_int_equal(peer_find_function(&peer, module, "fine", &function), CUDA_SUCCESS);
    }
    peer_leave(&peer);
    assert_true(peer_attach(&other, hostile.server.socket));
    for (unsigned i = 0; i + 2 < all; i++)
        assert_true(can_have_granule(&other));
    peer_leave(&other);
}

/* ---- waits ---- */

static void wait_forever(struct peer *peer)
{
    struct wire_cuStreamWaitValue32_v2 in = {.value = 5, .flags = CU_STREAM_WAIT_VALUE_EQ};

    in.hStream = peer_make_stream(peer, 1);
    assert_int_equal(peer_make_granule(peer, GRANULE, &in.addr), CUDA_SUCCESS);
    channel_lock(&peer->channel);
    wire_cuStreamWaitValue32_v2(&peer->channel, &in);
    channel_unlock(&peer->channel);
    free_for(peer);
}

/* Code that the server has not seen: its first kernel waits for all streams. */
static CUresult load_and_find(struct peer *peer)
{
    static unsigned number;
    uint64_t module, function;
    char image[8192];

    snprintf(image, sizeof(image), "%s// %u\n", witness_ptx, ++number);
    CUresult result = peer_load_module(peer, image, strlen(image) + 1, &module);

    return result != CUDA_SUCCESS ? result : peer_find_function(peer, module, "spin", &function);
}

static bool is_ended(struct peer *peer)
{
    return channel_sticky_error(&peer->channel) == CUDA_ERROR_MPS_CLIENT_TERMINATED;
}

/* A call that waits for all streams comes through, and the client that kept it away is ended. */
static void a_wait_that_keeps_others_away(void **state)
{
    struct peer waiter, loader;

    assert_true(peer_attach(&waiter, hostile.server.socket));
    assert_true(peer_attach(&loader, hostile.server.socket));
    wait_forever(&waiter);
    assert_int_equal(load_and_find(&loader), CUDA_SUCCESS);
    assert_true(is_ended(&waiter));
    peer_leave(&loader);
    peer_leave(&waiter);
}

/* No other client is to blame for a call that waits for its own client's stream. */
static void a_wait_that_keeps_its_own_client_away(void **state)
{
    struct peer waiter;

    assert_true(peer_attach(&waiter, hostile.server.socket));
    wait_forever(&waiter);
    assert_int_equal(load_and_find(&waiter), CUDA_ERROR_NOT_READY);
    assert_false(is_ended(&waiter));
    peer_leave(&waiter);
}

/* Each of these clients waits for a quarter of the limit, and one of them always waits. */
#define STAGGERED 6u
#define STAGGER_US 150000
#define LATE_NS NS_PER_SEC /* half of the limit */

struct staggered {
    struct peer peer[STAGGERED];
    uint64_t waits[STAGGERED], writes[STAGGERED], word[STAGGERED]; /* streams, and an address */
    uint64_t begun[STAGGERED];                                     /* clock_ns() */
    bool is_late; /* a wait took so long that its client may be ended for it */
    atomic_bool enough;
};

static void begin_to_wait(struct staggered *all, unsigned i, uint32_t value)
{
    const struct wire_cuStreamWaitValue32_v2 in = {.hStream = all->waits[i],
                                                   .addr = all->word[i],
                                                   .value = value,
                                                   .flags = CU_STREAM_WAIT_VALUE_EQ};

    all->begun[i] = clock_ns();
    channel_lock(&all->peer[i].channel);
    wire_cuStreamWaitValue32_v2(&all->peer[i].channel, &in);
    channel_unlock(&all->peer[i].channel);
}

static void end_wait(struct staggered *all, unsigned i, uint32_t value)
{
    const struct wire_cuStreamWriteValue32_v2 in = {
        .hStream = all->writes[i], .addr = all->word[i], .value = value};

    channel_lock(&all->peer[i].channel);
    wire_cuStreamWriteValue32_v2(&all->peer[i].channel, &in);
    channel_unlock(&all->peer[i].channel);
    all->is_late |= clock_ns() - all->begun[i] > LATE_NS;
}

static void *wait_in_turn(void *argument)
{
    struct staggered *all = argument;

    for (uint32_t turn = 0; !all->enough; turn++) {
        begin_to_wait(all, turn % STAGGERED, turn / STAGGERED + 1);
        usleep(STAGGER_US);
        if (turn >= STAGGERED / 2)
            end_wait(all, (turn - STAGGERED / 2) % STAGGERED,
                     (turn - STAGGERED / 2) / STAGGERED + 1);
    }
    return NULL;
}

static void waits_of_many_that_overlap(void **state)
{
    struct staggered all = {.enough = false};
    struct peer loader;
    pthread_t thread;

    assert_true(peer_attach(&loader, hostile.server.socket));
    for (unsigned i = 0; i < STAGGERED; i++) {
        assert_true(peer_attach(&all.peer[i], hostile.server.socket));
        all.waits[i] = peer_make_stream(&all.peer[i], 1);
        all.writes[i] = peer_make_stream(&all.peer[i], 2);
        assert_int_equal(peer_make_granule(&all.peer[i], GRANULE, &all.word[i]), CUDA_SUCCESS);
    }
    assert_int_equal(pthread_create(&thread, NULL, wait_in_turn, &all), 0);
    usleep(2 * STAGGER_US);
    assert_int_equal(load_and_find(&loader), CUDA_SUCCESS);
    all.enough = true;
    pthread_join(thread, NULL);
    for (unsigned i = 0; i < STAGGERED; i++) {
        if (!all.is_late)
            assert_false(is_ended(&all.peer[i]));
        peer_leave(&all.peer[i]);
    }
    peer_leave(&loader);
    if (all.is_late)
        skip();
}

int main(void)
{
    setenv("FUNNEL_QUOTAS", "wait-seconds=2", 1);
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(granules_whose_descriptor_was_kept),
        HOSTILE_CASE(more_than_the_limit_at_a_time),
        HOSTILE_CASE(allocations_that_were_exported),
        HOSTILE_CASE(variables_of_modules),
        HOSTILE_CASE(variables_however_they_are_written),
        HOSTILE_CASE(loads_that_were_refused_leave_nothing),
        HOSTILE_CASE(modules_that_were_unloaded_leave_nothing),
        HOSTILE_CASE(idle_libraries_give_way),
        HOSTILE_CASE(a_wait_that_keeps_others_away),
        HOSTILE_CASE(a_wait_that_keeps_its_own_client_away),
        HOSTILE_CASE(waits_of_many_that_overlap),
    };

    return HOSTILE_MAIN(tests);
}
