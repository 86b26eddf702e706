/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and events that two processes share by the handles of CUDA 4. Each test has a partner, a
 * process that was made before CUDA was touched and does its half when it receives a handle. What
 * it finds wrong it tells in its exit status.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 1000

struct partner {
    pid_t pid;
    int socket;
};

static CUmodule kernels;

static void say(int socket, const void *data, size_t size)
{
    if (write(socket, data, size) != (ssize_t)size)
        exit(EXIT_FAILURE);
}

static void receive(int socket, void *data, size_t size)
{
    if (read(socket, data, size) != (ssize_t)size)
        exit(EXIT_FAILURE);
}

static void say_go(int socket)
{
    say(socket, "x", 1);
}

static void hear_go(int socket)
{
    char byte;

    receive(socket, &byte, 1);
}

static struct partner pair_up(int (*role)(int socket))
{
    struct partner partner;
    int sockets[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) < 0)
        exit(EXIT_FAILURE);
    partner.socket = sockets[0];
    partner.pid = fork();
    if (partner.pid == 0) {
        close(sockets[0]);
        _exit(role(sockets[1]));
    }
    close(sockets[1]);
    return partner;
}

static bool parted_well(struct partner *partner)
{
    int status = -1;

    close(partner->socket);
    waitpid(partner->pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void launch_slow(CUstream stream, CUdeviceptr words, uint32_t value, uint32_t turns)
{
    uint32_t n = WORDS;
    void *parameters[] = {&words, &value, &n, &turns};

    launch_one(get_kernel(kernels, "slow_add"), stream, parameters);
}

/* ---- memory ---- */

/* Finds 7s, leaves 9s. */
static int change_memory(int socket)
{
    CUipcMemHandle handle;
    CUdeviceptr words, again, base = 0;
    uint32_t value = 9, n = WORDS;
    void *parameters[] = {&words, &value, &n};
    size_t size = 0;

    receive(socket, &handle, sizeof(handle));
    check_open();
    kernels = load_kernels();
    MUST(cuIpcOpenMemHandle_v2(&words, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    IS_TRUE(words_are(words, WORDS, 7));
    EXPECT(CUDA_SUCCESS, cuMemGetAddressRange_v2(&base, &size, words + 40));
    IS_TRUE(base == words && size >= WORDS * sizeof(uint32_t));
    EXPECT(CUDA_SUCCESS, cuIpcOpenMemHandle_v2(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    IS_TRUE(again == words);
    EXPECT(CUDA_SUCCESS, cuIpcCloseMemHandle(again));
    launch_one(get_kernel(kernels, "fill"), NULL, parameters);
    MUST(cuCtxSynchronize());
    IS_TRUE(words_are(words, WORDS, 9));
    IS_TRUE(cuMemFree_v2(words) != CUDA_SUCCESS);
    EXPECT(CUDA_SUCCESS, cuIpcCloseMemHandle(words));
    IS_TRUE(cuIpcCloseMemHandle(words) != CUDA_SUCCESS);
    say_go(socket);
    return check_close();
}

static struct partner changer;

/* Its neighbors lie in the same granule, and are none of the partner's business. */
static void memory_of_one_is_memory_of_both(void)
{
    CUdeviceptr before = make_words(WORDS, 1), words = make_words(WORDS, 7),
                after = make_words(WORDS, 2);
    CUipcMemHandle handle, same;

    MUST(cuCtxSynchronize());
    MUST(cuIpcGetMemHandle(&handle, words));
    EXPECT(CUDA_SUCCESS, cuIpcGetMemHandle(&same, words));
    IS_TRUE(memcmp(&handle, &same, sizeof(handle)) == 0);
    say(changer.socket, &handle, sizeof(handle));
    hear_go(changer.socket);
    IS_TRUE(words_are(words, WORDS, 9));
    IS_TRUE(words_are(before, WORDS, 1) && words_are(after, WORDS, 2));
    IS_TRUE(parted_well(&changer));
    IS_TRUE(words_are(words, WORDS, 9));
    MUST(cuMemFree_v2(before));
    MUST(cuMemFree_v2(words));
    MUST(cuMemFree_v2(after));
}

/* Names what it has, and ends without a word to the driver. */
static int name_and_vanish(int socket)
{
    CUipcMemHandle handle;

    check_open();
    CUdeviceptr words = make_words(WORDS, 3);
    MUST(cuCtxSynchronize());
    MUST(cuIpcGetMemHandle(&handle, words));
    say(socket, &handle, sizeof(handle));
    hear_go(socket);
    return 0;
}

static struct partner vanishing;

static void the_one_who_named_it_ends_first(void)
{
    CUdeviceptr mine = make_words(WORDS, 4), theirs;
    CUipcMemHandle handle;

    receive(vanishing.socket, &handle, sizeof(handle));
    MUST(cuIpcOpenMemHandle_v2(&theirs, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    IS_TRUE(words_are(theirs, WORDS, 3));
    say_go(vanishing.socket);
    IS_TRUE(parted_well(&vanishing));
    EXPECT(CUDA_SUCCESS, cuIpcCloseMemHandle(theirs));
    IS_TRUE(words_are(mine, WORDS, 4));
    MUST(cuMemFree_v2(mine));
}

static int open_and_vanish(int socket)
{
    CUipcMemHandle handle;
    CUdeviceptr words;

    receive(socket, &handle, sizeof(handle));
    check_open();
    MUST(cuIpcOpenMemHandle_v2(&words, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    IS_TRUE(words_are(words, WORDS, 5));
    return 0;
}

static struct partner careless;

static void the_one_who_opened_it_ends_first(void)
{
    CUdeviceptr words = make_words(WORDS, 5);
    CUipcMemHandle handle;

    MUST(cuCtxSynchronize());
    MUST(cuIpcGetMemHandle(&handle, words));
    say(careless.socket, &handle, sizeof(handle));
    IS_TRUE(parted_well(&careless));
    IS_TRUE(words_are(words, WORDS, 5));
    MUST(cuMemFree_v2(words));
    words = make_words(WORDS, 6);
    IS_TRUE(words_are(words, WORDS, 6));
    MUST(cuMemFree_v2(words));
}

static void what_cannot_be_named_or_opened(void)
{
    CUdeviceptr words = make_words(WORDS, 1), opened;
    CUipcMemHandle handle, nonsense;
    uint32_t mine[4];

    memset(&nonsense, 0x5a, sizeof(nonsense));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, (CUdeviceptr)(uintptr_t)mine));
    MUST(cuIpcGetMemHandle(&handle, words));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT,
           cuIpcOpenMemHandle_v2(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(&opened, handle, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuIpcOpenMemHandle_v2(&opened, nonsense, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    EXPECT(CUDA_SUCCESS, cuIpcGetMemHandle(&handle, words + 64)); /* of all that it lies in */
    IS_TRUE(cuIpcCloseMemHandle(words) != CUDA_SUCCESS);
    MUST(cuMemFree_v2(words));
}

/* ---- events ---- */

struct message {
    CUipcMemHandle words;
    CUipcEventHandle event;
};

/* Goes on where the other's stream has got to, and says in the same event how far it is itself. */
static int follow(int socket)
{
    struct message message;
    CUdeviceptr words;
    CUstream stream;
    CUevent event;

    receive(socket, &message, sizeof(message));
    check_open();
    kernels = load_kernels();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuIpcOpenMemHandle_v2(&words, message.words, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    MUST(cuIpcOpenEventHandle(&event, message.event));
    MUST(cuStreamWaitEvent(stream, event, 0));
    launch_slow(stream, words, 10, SLOW);
    MUST(cuEventRecord(event, stream));
    say_go(socket);
    EXPECT(CUDA_SUCCESS, cuEventSynchronize(event));
    EXPECT(CUDA_SUCCESS, cuEventQuery(event));
    hear_go(socket);
    EXPECT(CUDA_SUCCESS, cuEventDestroy_v2(event));
    EXPECT(CUDA_SUCCESS, cuIpcCloseMemHandle(words));
    return check_close();
}

static struct partner follower;

static void an_event_orders_two_processes(void)
{
    CUdeviceptr words = make_words(WORDS, 0);
    struct message message;
    CUstream stream;
    CUevent event;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    EXPECT(CUDA_SUCCESS, cuEventQuery(event));
    MUST(cuIpcGetMemHandle(&message.words, words));
    MUST(cuIpcGetEventHandle(&message.event, event));
    MUST(cuCtxSynchronize());
    launch_slow(stream, words, 1, 100 * SLOW);
    MUST(cuEventRecord(event, stream));
    say(follower.socket, &message, sizeof(message));
    hear_go(follower.socket);
    MUST(cuStreamWaitEvent(stream, event, 0));
    launch_slow(stream, words, 100, 0);
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words_are(words, WORDS, 111));
    EXPECT(CUDA_SUCCESS, cuEventSynchronize(event));
    say_go(follower.socket);
    IS_TRUE(parted_well(&follower));
    EXPECT(CUDA_SUCCESS, cuEventQuery(event));
    MUST(cuEventDestroy_v2(event));
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuMemFree_v2(words));
}

static void which_events_can_be_named(void)
{
    CUipcEventHandle handle;
    CUevent event;

    IS_TRUE(cuEventCreate(&event, CU_EVENT_INTERPROCESS) != CUDA_SUCCESS);
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    IS_TRUE(cuIpcGetEventHandle(&handle, event) != CUDA_SUCCESS);
    MUST(cuEventDestroy_v2(event));
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    changer = pair_up(change_memory);
    vanishing = pair_up(name_and_vanish);
    careless = pair_up(open_and_vanish);
    follower = pair_up(follow);
    check_open();
    kernels = load_kernels();
    RUN(memory_of_one_is_memory_of_both);
    RUN(the_one_who_named_it_ends_first);
    RUN(the_one_who_opened_it_ends_first);
    RUN(what_cannot_be_named_or_opened);
    RUN(an_event_orders_two_processes);
    RUN(which_events_can_be_named);
    return check_close();
}
