/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of one device that another process opens for the other device, whose kernels then reach it
 * without cuCtxEnablePeerAccess. Skips itself where there are no two devices that reach each other.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 1000

static int partner_socket;
static pid_t partner;

static void send_bytes(int socket, const void *data, size_t size)
{
    if (write(socket, data, size) != (ssize_t)size)
        exit(EXIT_FAILURE);
}

/* Finds 7s from the second device, leaves 9s. */
static int change_from_the_second_device(int socket)
{
    CUipcMemHandle handle;
    CUcontext context;
    CUdevice device;
    CUdeviceptr words, mine;
    uint32_t value = 9, n = WORDS;

    if (read(socket, &handle, sizeof(handle)) != sizeof(handle))
        return 0; /* the test is skipped */
    check_init();
    MUST(cuDeviceGet(&device, 1));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    CUmodule kernels = load_kernels();
    mine = make_words(WORDS, 0);
    MUST(cuIpcOpenMemHandle_v2(&words, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    launch_one(get_kernel(kernels, "copy"), NULL, (void *[]){&mine, &words, &n});
    launch_one(get_kernel(kernels, "fill"), NULL, (void *[]){&words, &value, &n});
    MUST(cuCtxSynchronize());
    IS_TRUE(words_are(mine, WORDS, 7));
    EXPECT(CUDA_SUCCESS, cuIpcCloseMemHandle(words));
    send_bytes(socket, "x", 1);
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
    CUipcMemHandle handle;
    char byte;

    MUST(cuCtxSynchronize());
    MUST(cuIpcGetMemHandle(&handle, words));
    send_bytes(partner_socket, &handle, sizeof(handle));
    IS_TRUE(read(partner_socket, &byte, 1) == 1);
    IS_TRUE(words_are(words, WORDS, 9));
    IS_TRUE(end_partner() == 0);
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
