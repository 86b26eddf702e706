/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and an event of one device that another process opens for the other device. Its kernels
 * reach the memory without cuCtxEnablePeerAccess, and its stream records the event. Skips itself
 * where there are no two devices that reach each other.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 1000

struct names {
    CUipcMemHandle memory;
    CUipcEventHandle event;
};

static int partner_socket;
static pid_t partner;

static void send_bytes(int socket, const void *data, size_t size)
{
    if (write(socket, data, size) != (ssize_t)size)
        exit(EXIT_FAILURE);
}

/* Finds 7s from the second device, leaves 9s, and a first word that takes a while. The host waits
 * for none of it before the other process is told that the event has been recorded. */
static int change_from_the_second_device(int socket)
{
    struct names names;
    CUcontext context;
    CUdevice device;
    CUstream stream;
    CUevent event;
    CUdeviceptr words, mine;
    uint32_t value = 9, n = WORDS, factor = 10, more = 4, turns = SLOW;

    if (read(socket, &names, sizeof(names)) != sizeof(names))
        return 0; /* the test is skipped */
    check_init();
    MUST(cuDeviceGet(&device, 1));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    CUmodule kernels = load_kernels();
    mine = make_words(WORDS, 0);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuIpcOpenMemHandle_v2(&words, names.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    MUST(cuIpcOpenEventHandle(&event, names.event));
    EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(stream, event, 0));
    launch_one(get_kernel(kernels, "copy"), stream, (void *[]){&mine, &words, &n});
    launch_one(get_kernel(kernels, "fill"), stream, (void *[]){&words, &value, &n});
    launch_one(get_kernel(kernels, "step"), stream, (void *[]){&words, &factor, &more, &turns});
    EXPECT(CUDA_SUCCESS, cuEventRecord(event, stream));
    send_bytes(socket, "x", 1);
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    IS_TRUE(words_are(mine, WORDS, 7));
    EXPECT(CUDA_SUCCESS, cuEventQuery(event));
    EXPECT(CUDA_SUCCESS, cuEventDestroy_v2(event));
    EXPECT(CUDA_SUCCESS, cuIpcCloseMemHandle(words));
    return check_close();
}

static void start_partner(void)
{
    int sockets[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) < 0)
        exit(EXIT_FAILURE);
    partner_socket = sockets[0];
    partner = fork();
    if (partner == 0) {
        close(sockets[0]);
        _exit(change_from_the_second_device(sockets[1]));
    }
    close(sockets[1]);
}

static int end_partner(void)
{
    int status = -1;

    close(partner_socket);
    waitpid(partner, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void the_second_device_reaches_it(void)
{
    CUdeviceptr words = make_words(WORDS, 7);
    struct names names;
    uint32_t *found;
    CUstream stream;
    CUevent event;
    char byte;

    MUST(cuMemAllocHost_v2((void **)&found, sizeof(*found)));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    MUST(cuEventRecord(event, NULL));
    MUST(cuIpcGetMemHandle(&names.memory, words));
    MUST(cuIpcGetEventHandle(&names.event, event));
    send_bytes(partner_socket, &names, sizeof(names));
    IS_TRUE(read(partner_socket, &byte, 1) == 1);
    EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(stream, event, 0));
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoHAsync_v2(found, words, sizeof(*found), stream));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    IS_TRUE(*found == 94);
    IS_TRUE(words_are(words + 4, WORDS - 1, 9));
    IS_TRUE(end_partner() == 0);
    EXPECT(CUDA_SUCCESS, cuEventRecord(event, stream));
    EXPECT(CUDA_SUCCESS, cuEventSynchronize(event));
    MUST(cuEventDestroy_v2(event));
    MUST(cuMemFreeHost(found));
    MUST(cuMemFree_v2(words));
}

static bool find_pair(void)
{
    CUdevice devices[2];
    int count = 0, can = 0;

    MUST(cuDeviceGetCount(&count));
    if (count < 2)
        return false;
    MUST(cuDeviceGet(&devices[0], 0));
    MUST(cuDeviceGet(&devices[1], 1));
    MUST(cuDeviceCanAccessPeer(&can, devices[1], devices[0]));
    return can;
}

int main(void)
{
    start_partner();
    check_open();
    if (!find_pair()) {
        end_partner();
        puts("no two devices that reach each other");
        return 77;
    }
    RUN(the_second_device_reaches_it);
    return check_close();
}
