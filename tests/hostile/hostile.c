/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server and the witness of a test program.
 */
#include "hostile.h"

#include <signal.h>
#include <stdio.h>

struct hostile hostile;

int hostile_group_setup(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    if (!server_process_start(&hostile.server)) {
        fprintf(stderr, "the server does not start\n");
        return -1;
    }
    if (!witness_start(&hostile.witness, hostile.server.socket)) {
        fprintf(stderr, "the witness cannot attach\n");
        return -1;
    }
    return hostile_check(state);
}

int hostile_check(void **state)
{
    (void)state;
    if (!server_process_alive(&hostile.server)) {
        fprintf(stderr, "the server has ended\n");
        return -1;
    }
    if (!witness_is_well(&hostile.witness)) {
        fprintf(stderr, "the witness is not well\n");
        return -1;
    }
    return 0;
}

int hostile_group_teardown(void **state)
{
    (void)state;
    witness_stop(&hostile.witness);
    server_process_stop(&hostile.server);
    return 0;
}

uint64_t free_memory(void)
{
    const struct wire_cuMemGetInfo_v2 in = {0};
    struct wire_cuMemGetInfo_v2_reply out = {0};

    assert_int_equal(wire_cuMemGetInfo_v2(&hostile.witness.peer.channel, &in, &out), CUDA_SUCCESS);
    return out.free;
}

bool free_memory_comes_back_to(uint64_t before)
{
    for (unsigned i = 0; i < 3000; i++) { /* a minute, for a machine that is busy */
        if (free_memory() >= before)
            return true;
        usleep(20000);
    }
    return false;
}

void hostile_attach(struct peer *peer)
{
    assert_true(peer_attach(peer, hostile.server.socket));
}

bool hostile_is_served(struct peer *peer)
{
    const struct wire_cuMemGetInfo_v2 in = {0};
    struct wire_cuMemGetInfo_v2_reply out = {0};

    return wire_cuMemGetInfo_v2(&peer->channel, &in, &out) == CUDA_SUCCESS && out.total > 0;
}

CUresult hostile_deferred(struct peer *peer)
{
    const struct wire_cuMemGetInfo_v2 in = {0};
    struct wire_cuMemGetInfo_v2_reply out = {0};

    assert_int_equal(wire_cuMemGetInfo_v2(&peer->channel, &in, &out), CUDA_SUCCESS);
    return channel_take_deferred_error(&peer->channel);
}
