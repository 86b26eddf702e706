/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that die, or are stopped, in the middle of an operation.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"
#include "region.h"

#define MIB (1ull << 20)

/* Runs `act` in a process of its own, which reports its end and then sleeps. */
static pid_t start_actor(void (*act)(struct peer *peer), int *ret_ready)
{
    int ready[2];

    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct peer peer;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!peer_attach(&peer, hostile.server.socket))
            _exit(1);
        act(&peer);
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(0);
    }
    close(ready[1]);
    *ret_ready = ready[0];
    return pid;
}

static void end_actor(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void act_and_die(void (*act)(struct peer *peer))
{
    char byte;
    int ready;
    pid_t pid = start_actor(act, &ready);

    assert_int_equal(read(ready, &byte, 1), 1);
    close(ready);
    end_actor(pid);
}

static void take_memory(struct peer *peer)
{
    uint64_t address;

    for (unsigned i = 0; i < 8; i++)
        peer_make_granule(peer, 8 * MIB, &address);
}

static void memory_comes_back(void **state)
{
    uint64_t before = free_memory();

    (void)state;
    for (unsigned i = 0; i < 20; i++)
        act_and_die(take_memory);
    assert_true(free_memory_comes_back_to(before));
}

static void launch_spin(struct peer *peer, uint64_t stream, uint32_t iterations)
{
    uint64_t module, function;

    peer_load_module(peer, witness_ptx, strlen(witness_ptx) + 1, &module);
    peer_find_function(peer, module, "spin", &function);
    const struct wire_cuLaunchKernelEx in = {.f = function,
                                             .shape = {1, 1, 1, 32, 1, 1},
                                             .hStream = stream,
                                             .params = &iterations,
                                             .params_size = sizeof(iterations)};
    channel_lock(&peer->channel);
    peer_launch(peer, &in);
    channel_unlock(&peer->channel);
}

static void compute(struct peer *peer)
{
    uint64_t stream = peer_make_stream(peer, 1);

    take_memory(peer);
    launch_spin(peer, stream, 3000000);
}

/* The memory goes only when the kernel is done with it. */
static void dies_with_a_kernel_running(void **state)
{
    uint64_t before = free_memory();

    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        act_and_die(compute);
        assert_int_equal(hostile_check(NULL), 0);
    }
    assert_true(free_memory_comes_back_to(before));
}

static const char write_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry write(.param .u64 address, .param .u32 iterations)\n"
    "{\n"
    "    .reg .pred %p<2>;\n    .reg .b32 %r<3>;\n    .reg .b64 %rd<2>;\n"
    "    ld.param.u64 %rd1, [address];\n    ld.param.u32 %r1, [iterations];\n    mov.u32 %r2, 0;\n"
    "LOOP:\n    st.global.u32 [%rd1], %r2;\n    add.u32 %r2, %r2, 1;\n"
    "    setp.lt.u32 %p1, %r2, %r1;\n    @%p1 bra LOOP;\n"
    "    ret;\n}\n";

/* A kernel that uses the peer's memory for a while, on a stream that is destroyed meanwhile. */
static void write_behind_a_destroyed_stream(struct peer *peer)
{
    struct {
        uint64_t address;
        uint32_t iterations;
    } parameters = {.iterations = 3000000};
    uint64_t stream = peer_make_stream(peer, 1), module, function;

    peer_make_granule(peer, 2 * MIB, &parameters.address);
    peer_load_module(peer, write_ptx, sizeof(write_ptx), &module);
    peer_find_function(peer, module, "write", &function);
    const struct wire_cuLaunchKernelEx in = {.f = function,
                                             .shape = {1, 1, 1, 32, 1, 1},
                                             .hStream = stream,
                                             .params = &parameters,
                                             .params_size = 12};
    const struct wire_cuStreamDestroy_v2 end = {.hStream = stream};
    channel_lock(&peer->channel);
    peer_launch(peer, &in);
    wire_cuStreamDestroy_v2(&peer->channel, &end);
    channel_unlock(&peer->channel);
}

/* The memory stays while the kernel runs, else its fault would end the witness, too. */
static void dies_after_destroying_a_stream(void **state)
{
    uint64_t before = free_memory();

    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        act_and_die(write_behind_a_destroyed_stream);
        assert_int_equal(hostile_check(NULL), 0);
    }
    assert_true(free_memory_comes_back_to(before));
    assert_int_equal(hostile_check(NULL), 0);
}

static void hold_streams(struct peer *peer)
{
    channel_lock(&peer->channel);
    channel_unlock(&peer->channel);
    take_memory(peer);
    for (uint32_t word = 1; word < 12; word++) {
        uint64_t stream = peer_make_stream(peer, word);
        const struct wire_cuLaunchHostFunc callback = {
            .hStream = stream, .seq = 1, .host_wait_word = word, .host_wait_seq = 1};
        const struct wire_cuStreamWaitValue32_v2 wait = {
            .hStream = stream, .addr = peer->offer.staging_address + 64 * word, .value = 9};
        channel_lock(&peer->channel);
        if (word % 2)
            wire_cuLaunchHostFunc(&peer->channel, &callback);
        else
            wire_cuStreamWaitValue32_v2(&peer->channel, &wait);
        channel_unlock(&peer->channel);
    }
}

/* Streams that wait for their client when it dies are let go. */
static void dies_holding_streams(void **state)
{
    uint64_t before = free_memory();

    (void)state;
    act_and_die(hold_streams);
    assert_true(free_memory_comes_back_to(before));
}

static void flood(struct peer *peer)
{
    uint64_t stream = peer_make_stream(peer, 1);
    const struct wire_fnFence fence = {.hStream = stream, .seq = 1};

    for (unsigned i = 0; i < 20000; i++) {
        channel_lock(&peer->channel);
        wire_fnFence(&peer->channel, &fence);
        channel_unlock(&peer->channel);
    }
}

static void dies_at_any_moment(void **state)
{
    uint64_t seed = 99;

    (void)state;
    for (unsigned i = 0; i < 30; i++) {
        int ready;
        pid_t pid = start_actor(i % 2 ? flood : compute, &ready);
        usleep(unit_random(&seed) % 20000);
        end_actor(pid);
        close(ready);
        assert_int_equal(hostile_check(NULL), 0);
    }
}

static void stopped_clients_stop_no_other(void **state)
{
    pid_t pids[4];
    int ready[4];

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        pids[i] = start_actor(i % 2 ? flood : hold_streams, &ready[i]);
        usleep(5000);
        kill(pids[i], SIGSTOP);
    }
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(hostile_check(NULL), 0);
    for (unsigned i = 0; i < 4; i++) {
        end_actor(pids[i]);
        close(ready[i]);
    }
}

/* A client that asks for memory and never reads from its socket. */
static void never_reads_its_socket(void **state)
{
    struct peer peer;

    (void)state;
    assert_true(peer_attach(&peer, hostile.server.socket));
    const struct wire_fnGranuleCreate in = {.size = 2 * MIB, .room = 2 * MIB};
    channel_lock(&peer.channel);
    for (unsigned i = 0; i < 300; i++) {
        struct ring_message *message = channel_reserve(&peer.channel, 32);
        message->kind = channel_kind(WIRE_fnGranuleCreate, (int)(i % 32));
        memcpy((unsigned char *)message + 8, &in.device, 4);
        memcpy((unsigned char *)message + 16, &in.size, 8);
        channel_commit(&peer.channel);
    }
    channel_unlock(&peer.channel);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(hostile_check(NULL), 0);
    peer_leave(&peer);
}

static void compute_endlessly(struct peer *peer)
{
    launch_spin(peer, peer_make_stream(peer, 1), UINT32_MAX);
}

/* Of the server's main thread, in clock ticks. */
static long cpu_time(void)
{
    char path[64];
    long user = 0, system = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", hostile.server.pid, hostile.server.pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    int got = fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld",
                     &user, &system);
    fclose(file);
    assert_int_equal(got, 2);
    return user + system;
}

static bool is_idle_for_a_second(void)
{
    long before = cpu_time();

    sleep(1);
    return cpu_time() - before < sysconf(_SC_CLK_TCK) / 10;
}

/* The last test: its kernel ends with the server. What the tests before have left may take a while
 * to clean up. */
static void no_thread_works_for_an_ended_client(void **state)
{
    bool idle = false;

    (void)state;
    act_and_die(compute_endlessly);
    assert_int_equal(hostile_check(NULL), 0);
    for (unsigned second = 0; second < 60 && !idle; second++)
        idle = is_idle_for_a_second();
    assert_true(idle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(memory_comes_back),
        HOSTILE_CASE(dies_with_a_kernel_running),
        HOSTILE_CASE(dies_after_destroying_a_stream),
        HOSTILE_CASE(dies_holding_streams),
        HOSTILE_CASE(dies_at_any_moment),
        HOSTILE_CASE(stopped_clients_stop_no_other),
        HOSTILE_CASE(never_reads_its_socket),
        HOSTILE_CASE(no_thread_works_for_an_ended_client),
    };

    return HOSTILE_MAIN(tests);
}
