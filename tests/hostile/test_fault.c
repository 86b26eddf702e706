/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that writes where nothing is. It takes the context along, and this server with it; but
 * every client gets the reason.
 */
#include "hostile.h"
#include "sock.h"

static void all_clients_are_told_of_a_fault(void **state)
{
    struct peer peer;

    (void)state;
    assert_true(peer_attach(&peer, hostile.server.socket));
    assert_true(peer_poke(&peer, 0x1000));
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
