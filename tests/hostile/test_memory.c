/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that outlives its client: a process that has kept the descriptors of one client's memory
 * looks for what the next clients do.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fd.h"
#include "hostile.h"
#include "shm.h"
#include "sock.h"

#define GRANULE (2u << 20)
#define SPIES 3u
#define VICTIMS 40u

/* What is left of a client that has gone: mappings of its memory. */
struct spy {
    unsigned char *region, *granule;
    uint64_t base, region_size;
};

static void make_host_granule(struct peer *peer, unsigned char **ret_mapped)
{
    _cleanup_fd_ int fd = -1;
    uint64_t address;
    void *mapped = NULL;

    assert_int_equal(peer_make_host_granule(peer, GRANULE, &address, &fd), CUDA_SUCCESS);
    assert_int_equal(shm_map(fd, GRANULE, NULL, 0, &mapped), 0);
    *ret_mapped = mapped;
}

static void leave_a_spy(struct spy *spy)
{
    struct peer peer;

    assert_true(peer_attach(&peer, hostile.server.socket));
    make_host_granule(&peer, &spy->granule);
    spy->region = peer.gpu;
    spy->region_size = peer.offer.gpu_size;
    spy->base = peer.offer.window_base;
    peer.gpu = NULL;
    peer_leave(&peer);
}

/* Does what a victim writes appear in what a spy has, or the other way round? */
static void is_seen_by_none(const struct peer *victim, unsigned char *granule,
                            const struct spy *spies)
{
    uint64_t staging = GPU_REGION_STAGING_OFFSET;

    memset(victim->gpu + staging, 0x5a, 64);
    memset(granule, 0x5a, 64);
    for (unsigned i = 0; i < SPIES; i++) {
        assert_int_not_equal(spies[i].region[staging], 0x5a);
        assert_int_not_equal(spies[i].granule[0], 0x5a);
        memset(spies[i].region + staging, 0x11, 64);
        memset(spies[i].granule, 0x11, 64);
    }
    assert_int_equal(victim->gpu[staging], 0x5a);
    assert_int_equal(granule[0], 0x5a);
}

static bool had_a_spy(const struct peer *victim, const struct spy *spies)
{
    for (unsigned i = 0; i < SPIES; i++)
        if (spies[i].base == victim->offer.window_base)
            return true;
    return false;
}

static void memory_of_a_client_that_has_gone(void **state)
{
    struct spy spies[SPIES];
    unsigned reused = 0;

    (void)state;
    for (unsigned i = 0; i < SPIES; i++)
        leave_a_spy(&spies[i]);
    for (unsigned i = 0; i < VICTIMS; i++) {
        struct peer victim;
        unsigned char *granule;

        usleep(i == VICTIMS / 2 ? 3000000 : 0); /* now the server renews windows */
        assert_true(peer_attach(&victim, hostile.server.socket));
        make_host_granule(&victim, &granule);
        is_seen_by_none(&victim, granule, spies);
        reused += had_a_spy(&victim, spies);
        shm_unmap(granule, GRANULE);
        peer_leave(&victim);
    }
    assert_int_not_equal(reused, 0); /* addresses of theirs were given out again */
    for (unsigned i = 0; i < SPIES; i++) {
        shm_unmap(spies[i].region, spies[i].region_size);
        shm_unmap(spies[i].granule, GRANULE);
    }
}

/* An offer alone shows a window's memory. */
static void memory_of_an_offer_that_was_declined(void **state)
{
    struct peer curious, victim;
    unsigned char *seen;
    void *mapped = NULL;

    (void)state;
    assert_true(peer_connect(&curious, hostile.server.socket));
    struct hello hello = peer_hello();
    assert_int_equal(sock_send(curious.socket, &hello, sizeof(hello), NULL, 0), 0);
    assert_true(peer_receive_offer(&curious));
    uint64_t size = curious.offer.gpu_size;
    assert_int_equal(shm_map(curious.fds[ATTACH_FD_GPU], size, NULL, 0, &mapped), 0);
    seen = mapped;
    peer_leave(&curious);
    for (unsigned i = 0; i < 10; i++) {
        assert_true(peer_attach(&victim, hostile.server.socket));
        memset(victim.gpu + GPU_REGION_STAGING_OFFSET, 0x5a, 64);
        assert_int_not_equal(seen[GPU_REGION_STAGING_OFFSET], 0x5a);
        peer_leave(&victim);
    }
    shm_unmap(mapped, size);
}

static uint64_t reserve(struct peer *peer, uint64_t from)
{
    const struct wire_fnReserve in = {.from = from, .size = GRANULE, .alignment = GRANULE};
    struct wire_fnReserve_reply out = {0};

    assert_int_equal(wire_fnReserve(&peer->channel, &in, &out), CUDA_SUCCESS);
    return out.address;
}

static void unreserve(struct peer *peer, uint64_t address)
{
    const struct wire_fnUnreserve in = {.address = address};

    channel_lock(&peer->channel);
    wire_fnUnreserve(&peer->channel, &in);
    channel_unlock(&peer->channel);
}

/* Queued work, graphs and textures may still have the address, so no other client gets it before
 * the client has gone. The client itself may have it again. */
static void addresses_that_were_given_back(void **state)
{
    struct peer first, other;

    (void)state;
    assert_true(peer_attach(&first, hostile.server.socket));
    assert_true(peer_attach(&other, hostile.server.socket));
    uint64_t address = reserve(&first, 0);
    unreserve(&first, address);
    assert_int_equal(reserve(&first, address), address);
    unreserve(&first, address);
    assert_int_equal(reserve(&first, 0), address);
    unreserve(&first, address);
    assert_int_not_equal(reserve(&other, address), address);
    peer_leave(&first);
    for (unsigned tries = 0; reserve(&other, address) != address; tries++) {
        assert_in_range(tries, 0, 3000);
        usleep(20000);
    }
    peer_leave(&other);
}

/* Page-locked memory is missing to all processes of the machine, also while it is idle. */
static void host_memory_has_a_quota(void **state)
{
    struct peer peer;
    uint64_t address, size = 64u << 20;

    (void)state;
    assert_true(peer_attach(&peer, hostile.server.socket));
    for (unsigned i = 0; i < 4; i++) {
        _cleanup_fd_ int fd = -1;
        assert_int_equal(peer_make_host_granule(&peer, size, &address, &fd), CUDA_SUCCESS);
    }
    _cleanup_fd_ int none = -1;
    assert_int_equal(peer_make_host_granule(&peer, size, &address, &none),
                     CUDA_ERROR_OUT_OF_MEMORY);
    peer_leave(&peer);
}

static CUresult bring(struct peer *peer, int fd, uint64_t size)
{
    uint64_t address;

    return peer_bring_host_memory(peer, fd, size, &address);
}

/* Memory that a client makes for the server to lock: none at all, too little, what can shrink.
 * Pages that are not there yet would be charged to the server. */
static void memory_that_a_client_makes(void **state)
{
    _cleanup_fd_ int made = -1, loose = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int pipes[2];
    struct peer peer;

    (void)state;
    assert_true(peer_attach(&peer, hostile.server.socket));
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(shm_create("test", GRANULE, &made), 0);
    assert_int_equal(ftruncate(loose, GRANULE), 0);
    assert_int_equal(shm_populate(loose, GRANULE), 0);
    assert_int_equal(bring(&peer, pipes[0], GRANULE), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(bring(&peer, loose, GRANULE), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(bring(&peer, made, GRANULE), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(shm_populate(made, GRANULE), 0);
    assert_int_equal(bring(&peer, made, 2 * GRANULE), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(bring(&peer, made, GRANULE - 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(bring(&peer, made, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(bring(&peer, made, GRANULE), CUDA_SUCCESS);
    fd_close(&pipes[0]);
    fd_close(&pipes[1]);
    peer_leave(&peer);
}

int main(void)
{
    setenv("FUNNEL_SOFT_POPULATES", "1", 1);
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(memory_of_a_client_that_has_gone),
        HOSTILE_CASE(memory_of_an_offer_that_was_declined),
        HOSTILE_CASE(addresses_that_were_given_back),
        HOSTILE_CASE(host_memory_has_a_quota),
        HOSTILE_CASE(memory_that_a_client_makes),
    };

    return HOSTILE_MAIN(tests);
}
