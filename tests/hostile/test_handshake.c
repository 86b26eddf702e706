/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that never become clients.
 */
#include <string.h>
#include <unistd.h>

#include "fd.h"
#include "hostile.h"
#include "shm.h"
#include "sock.h"

static void call_with(const void *hello, size_t size, const int *fds, size_t fd_count,
                      struct peer *ret_peer)
{
    assert_true(peer_connect(ret_peer, hostile.server.socket));
    assert_int_equal(sock_send(ret_peer->socket, hello, size, fds, fd_count), 0);
}

static void hello_of_every_length(void **state)
{
    struct hello hello = peer_hello();
    struct peer peer;

    (void)state;
    for (size_t size = 1; size < sizeof(hello); size += size < 64 ? 1 : 37) {
        call_with(&hello, size, NULL, 0, &peer);
        assert_true(peer_is_cut_off(&peer));
        peer_leave(&peer);
    }
}

static void hello_that_is_too_long(void **state)
{
    unsigned char bytes[sizeof(struct hello) + 100] = {0};
    struct hello hello = peer_hello();
    struct peer peer;

    (void)state;
    memcpy(bytes, &hello, sizeof(hello));
    call_with(bytes, sizeof(bytes), NULL, 0, &peer);
    assert_true(peer_is_cut_off(&peer));
    peer_leave(&peer);
}

static void hello_with_descriptors(void **state)
{
    struct hello hello = peer_hello();
    const int fds[] = {0, 1, 2};
    struct peer peer;

    (void)state;
    call_with(&hello, sizeof(hello), fds, 3, &peer);
    assert_true(peer_is_cut_off(&peer));
    peer_leave(&peer);
}

static void hello_without_magic(void **state)
{
    struct hello hello = peer_hello();
    struct peer peer;

    (void)state;
    hello.magic++;
    call_with(&hello, sizeof(hello), NULL, 0, &peer);
    assert_true(peer_is_cut_off(&peer));
    peer_leave(&peer);
}

static void is_refused_with_805(struct hello hello)
{
    struct welcome welcome;
    struct peer peer;
    size_t fds = 0;

    call_with(&hello, sizeof(hello), NULL, 0, &peer);
    assert_int_equal(sock_recv(peer.socket, &welcome, sizeof(welcome), NULL, 0, &fds, 10000),
                     sizeof(welcome));
    assert_int_equal(welcome.magic, WELCOME_MAGIC);
    assert_int_equal(welcome.status, CUDA_ERROR_MPS_CONNECTION_FAILED);
    assert_true(strlen(welcome.text) > 0);
    assert_true(peer_is_cut_off(&peer));
    peer_leave(&peer);
}

static void another_version_is_refused(void **state)
{
    struct hello hello = peer_hello();

    (void)state;
    hello.version++;
    is_refused_with_805(hello);
    hello = peer_hello();
    hello.api_hash++;
    is_refused_with_805(hello);
}

/* 0, or why a client that asks for this window is refused. */
static int ask_for(struct hello hello, uint64_t base)
{
    struct peer peer;

    hello.window_base = base;
    call_with(&hello, sizeof(hello), NULL, 0, &peer);
    peer_receive_offer(&peer);
    peer_leave(&peer);
    return peer.offer.welcome.status;
}

/* No client gets a window for asking: this server follows no other. */
static void windows_that_are_asked_for(void **state)
{
    const uint64_t nonsense[] = {1, WINDOW_FIRST - 4096, WINDOW_FIRST + 4096, RESERVE_FIRST,
                                 UINT64_MAX};
    struct hello own = peer_hello(), stranger = peer_hello();
    struct peer first;

    (void)state;
    memset(own.token, 1, sizeof(own.token));
    memset(stranger.token, 2, sizeof(stranger.token));
    assert_true(peer_attach_as(&first, hostile.server.socket, &own));
    const uint64_t base = first.offer.window_base;
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(*nonsense); i++)
        assert_int_equal(ask_for(own, nonsense[i]), CUDA_ERROR_MPS_CONNECTION_FAILED);
    assert_int_equal(ask_for(own, base), CUDA_ERROR_MAP_FAILED); /* it is in use */
    peer_leave(&first);
    assert_int_equal(ask_for(stranger, base), CUDA_ERROR_MPS_CONNECTION_FAILED);
    assert_int_equal(ask_for(peer_hello(), base), CUDA_ERROR_MPS_CONNECTION_FAILED);
}

static void greet(struct peer *peer)
{
    struct hello hello = peer_hello();

    call_with(&hello, sizeof(hello), NULL, 0, peer);
    assert_true(peer_receive_offer(peer));
}

static void silent_callers_delay_no_client(void **state)
{
    struct peer silent[20], undecided, other;

    (void)state;
    for (unsigned i = 0; i < 20; i++)
        assert_true(peer_connect(&silent[i], hostile.server.socket));
    greet(&undecided); /* and never answers */
    assert_true(peer_attach(&other, hostile.server.socket));
    assert_int_equal(hostile_check(NULL), 0);
    peer_leave(&other);
    peer_leave(&undecided);
    for (unsigned i = 0; i < 20; i++)
        peer_leave(&silent[i]);
}

static void every_window_is_turned_down(void **state)
{
    uint64_t bases[ATTACH_TRIES];
    struct peer peer;

    (void)state;
    greet(&peer);
    for (unsigned try = 0; try < ATTACH_TRIES; try++) {
        bases[try] = peer.offer.window_base;
        for (unsigned before = 0; before < try; before++)
            assert_int_not_equal(bases[before], bases[try]);
        assert_true(peer_answer(&peer, ATTACH_TAKEN));
        bool more = peer_receive_offer(&peer);
        assert_int_equal(more, try + 1 < ATTACH_TRIES);
    }
    assert_int_equal(peer.offer.welcome.status, CUDA_ERROR_MPS_CONNECTION_FAILED);
    assert_true(peer_is_cut_off(&peer));
    peer_leave(&peer);
    greet(&peer); /* and they are all there for the next */
    peer_leave(&peer);
}

static void answers_that_are_none(void **state)
{
    const uint32_t answers[][2] = {
        {0, ATTACH_OK}, {ATTACH_REPLY_MAGIC, 0}, {ATTACH_REPLY_MAGIC, 99}};
    struct peer peer;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        greet(&peer);
        assert_int_equal(sock_send(peer.socket, answers[i], sizeof(answers[i]), NULL, 0), 0);
        assert_true(peer_is_cut_off(&peer));
        peer_leave(&peer);
    }
    greet(&peer);
    assert_int_equal(sock_send(peer.socket, "x", 1, NULL, 0), 0);
    assert_true(peer_is_cut_off(&peer));
    peer_leave(&peer);
}

/* The device table is for reading, the others cannot be made smaller. */
static void descriptors_are_sealed(void **state)
{
    struct peer peer;
    void *address = NULL;

    (void)state;
    assert_true(peer_attach(&peer, hostile.server.socket));
    assert_int_not_equal(ftruncate(peer.fds[ATTACH_FD_CONTROL], 0), 0);
    assert_int_not_equal(ftruncate(peer.fds[ATTACH_FD_GPU], 0), 0);
    assert_int_not_equal(ftruncate(peer.fds[ATTACH_FD_DEVICES], 0), 0);
    assert_int_not_equal(write(peer.fds[ATTACH_FD_DEVICES], "x", 1), 1);
    assert_int_not_equal(shm_map(peer.fds[ATTACH_FD_DEVICES], 4096, NULL, 0, &address), 0);
    peer_leave(&peer);
}

static void comes_and_goes(void **state)
{
    struct peer peer;

    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        assert_true(peer_connect(&peer, hostile.server.socket));
        peer_leave(&peer);
    }
    for (unsigned i = 0; i < 50; i++) {
        assert_true(peer_attach(&peer, hostile.server.socket));
        peer_leave(&peer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(hello_of_every_length),
        HOSTILE_CASE(hello_that_is_too_long),
        HOSTILE_CASE(hello_with_descriptors),
        HOSTILE_CASE(hello_without_magic),
        HOSTILE_CASE(another_version_is_refused),
        HOSTILE_CASE(windows_that_are_asked_for),
        HOSTILE_CASE(silent_callers_delay_no_client),
        HOSTILE_CASE(every_window_is_turned_down),
        HOSTILE_CASE(answers_that_are_none),
        HOSTILE_CASE(descriptors_are_sealed),
        HOSTILE_CASE(comes_and_goes),
    };

    return HOSTILE_MAIN(tests);
}
