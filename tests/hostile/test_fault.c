/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that writes where nothing is. It takes the context along, and this server with it; but
 * every client gets the reason.
 */
#include <string.h>

#include "hostile.h"
#include "sock.h"

static void poke(struct peer *peer, uint64_t address)
{
    uint64_t module, function, stream = peer_make_stream(peer, 1);

    assert_int_equal(peer_load_module(peer, witness_ptx, strlen(witness_ptx) + 1, &module), 0);
    assert_int_equal(peer_find_function(peer, module, "poke", &function), 0);
    const struct wire_cuLaunchKernelEx in = {.f = function,
                                             .shape = {1, 1, 1, 1, 1, 1},
                                             .hStream = stream,
                                             .params = &address,
                                             .params_size = sizeof(address)};
    channel_lock(&peer->channel);
    assert_true(peer_launch(peer, &in));
    channel_unlock(&peer->channel);
    assert_true(peer_fence(peer, stream, 1));
}

static void all_clients_are_told_of_a_fault(void **state)
{
    struct peer peer;

    (void)state;
    assert_true(peer_attach(&peer, hostile.server.socket));
    poke(&peer, 0x1000);
    assert_true(peer_is_cut_off(&peer));
    assert_int_equal(channel_error(&peer.channel), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_true(peer_is_cut_off(&hostile.witness.peer));
    assert_int_equal(channel_error(&hostile.witness.peer.channel), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(server_process_wait(&hostile.server), 3);
    peer_leave(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_clients_are_told_of_a_fault)};

    return HOSTILE_MAIN(tests);
}
