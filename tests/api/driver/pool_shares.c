/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools that two processes share. One exports its pool by a descriptor and allocations of it
 * by name, and the other, made before CUDA was touched, imports both.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 1000
#define POSIX CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static CUstream stream;

static void send_descriptor(int socket, int fd)
{
    char byte = 'x', control[CMSG_SPACE(sizeof(fd))] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    if (sendmsg(socket, &message, 0) != 1)
        exit(EXIT_FAILURE);
}

static int receive_descriptor(int socket)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    int fd;

    if (recvmsg(socket, &message, 0) != 1 || !CMSG_FIRSTHDR(&message))
        exit(EXIT_FAILURE);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return fd;
}

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

static CUmemoryPool make_pool(CUmemAllocationHandleType handles)
{
    const CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = handles,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
    CUmemoryPool pool = NULL;

    MUST(cuMemPoolCreate(&pool, &props));
    return pool;
}

static int export_pool(CUmemoryPool pool)
{
    int fd = -1;

    MUST(cuMemPoolExportToShareableHandle(&fd, pool, POSIX, 0));
    return fd;
}

/* ---- the other process: finds 7s, leaves 9s ---- */

static void check_imported_pool(CUmemoryPool pool)
{
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUdeviceptr none;

    EXPECT(CUDA_SUCCESS, cuMemPoolGetAccess(&access, pool, &here));
    IS_TRUE(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    IS_TRUE(cuMemAllocFromPoolAsync(&none, 64, pool, NULL) != CUDA_SUCCESS);
    IS_TRUE(cuDeviceSetMemPool(0, pool) != CUDA_SUCCESS);
}

static int change_memory(int socket)
{
    CUmemPoolPtrExportData names[2];
    CUmemoryPool pool = NULL;
    CUdeviceptr words = 0, foreign = 0;
    CUcontext context;
    int fd = receive_descriptor(socket);
    uint32_t first;

    receive(socket, names, sizeof(names));
    check_open();
    MUST(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, POSIX, 0));
    close(fd);
    check_imported_pool(pool);
    MUST(cuCtxPopCurrent_v2(&context));
    MUST(cuMemPoolImportPointer(&words, pool, &names[0]));
    MUST(cuCtxPushCurrent_v2(context));
    IS_TRUE(cuMemPoolImportPointer(&foreign, pool, &names[1]) != CUDA_SUCCESS);
    IS_TRUE(words_are(words, WORDS, 7));
    MUST(cuMemsetD32_v2(words, 9, WORDS));
    MUST(cuMemcpyDtoH_v2(&first, words, sizeof(first)));
    IS_TRUE(first == 9);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT(CUDA_SUCCESS, cuMemFreeAsync(words, stream));
    MUST(cuStreamSynchronize(stream));
    EXPECT(CUDA_SUCCESS, cuMemPoolDestroy(pool));
    say(socket, "x", 1);
    return check_close();
}

/* ---- this one ---- */

static int partner_socket;
static pid_t partner;

static void pair_up(void)
{
    int sockets[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) < 0)
        exit(EXIT_FAILURE);
    partner_socket = sockets[0];
    partner = fork();
    if (partner == 0) {
        close(sockets[0]);
        _exit(change_memory(sockets[1]));
    }
    close(sockets[1]);
}

static bool partner_ended_well(void)
{
    int status = -1;

    close(partner_socket);
    waitpid(partner, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void an_allocation_of_one_is_the_others(void)
{
    CUmemoryPool pool = make_pool(POSIX), other = make_pool(POSIX);
    CUmemPoolPtrExportData names[2];
    CUdeviceptr words, before, foreign;
    int fd = export_pool(pool), second = export_pool(other);
    char byte;

    MUST(cuMemAllocFromPoolAsync(&before, WORDS * 4, pool, stream));
    MUST(cuMemAllocFromPoolAsync(&words, WORDS * 4, pool, stream));
    MUST(cuMemAllocFromPoolAsync(&foreign, WORDS * 4, other, stream));
    MUST(cuMemsetD32Async(before, 1, WORDS, stream));
    MUST(cuMemsetD32Async(words, 7, WORDS, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemPoolExportPointer(&names[0], words));
    MUST(cuMemPoolExportPointer(&names[1], foreign));
    send_descriptor(partner_socket, fd);
    close(fd);
    close(second);
    say(partner_socket, names, sizeof(names));
    receive(partner_socket, &byte, 1);
    IS_TRUE(words_are(words, WORDS, 9) && words_are(before, WORDS, 1));
    IS_TRUE(partner_ended_well());
    IS_TRUE(words_are(words, WORDS, 9));
    MUST(cuMemFreeAsync(words, stream));
    MUST(cuMemFreeAsync(before, stream));
    MUST(cuMemFreeAsync(foreign, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemPoolDestroy(pool));
    MUST(cuMemPoolDestroy(other));
}

static void what_cannot_be_exported(void)
{
    CUmemoryPool own = make_pool(CU_MEM_HANDLE_TYPE_NONE), standard, imported;
    CUmemPoolPtrExportData name;
    CUdeviceptr words, plain = make_words(4, 1);
    int fd = -1;

    MUST(cuDeviceGetDefaultMemPool(&standard, 0));
    IS_TRUE(cuMemPoolExportToShareableHandle(&fd, own, POSIX, 0) != CUDA_SUCCESS);
    IS_TRUE(cuMemPoolExportToShareableHandle(&fd, standard, POSIX, 0) != CUDA_SUCCESS);
    MUST(cuMemAllocFromPoolAsync(&words, 64, own, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(cuMemPoolExportPointer(&name, words) != CUDA_SUCCESS);
    IS_TRUE(cuMemPoolExportPointer(&name, plain) != CUDA_SUCCESS);
    IS_TRUE(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)0, POSIX, 0) !=
            CUDA_SUCCESS);
    MUST(cuMemFreeAsync(words, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemPoolDestroy(own));
    MUST(cuMemFree_v2(plain));
}

static void pools_of_places(void)
{
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUmemoryPool pool = make_pool(CU_MEM_HANDLE_TYPE_NONE), standard, found;
    int types = 0;

    MUST(cuDeviceGetAttribute(&types, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0));
    IS_TRUE(types & POSIX);
    MUST(cuDeviceGetDefaultMemPool(&standard, 0));
    EXPECT(CUDA_SUCCESS, cuMemGetDefaultMemPool(&found, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    IS_TRUE(found == standard);
    EXPECT(CUDA_SUCCESS, cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
    EXPECT(CUDA_SUCCESS, cuMemGetMemPool(&found, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    IS_TRUE(found == pool);
    EXPECT(CUDA_SUCCESS, cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, standard));
    EXPECT(CUDA_SUCCESS, cuMemPoolSetAccess(pool, &access, 1));
    EXPECT(CUDA_SUCCESS, cuMemPoolGetAccess(&flags, pool, &here));
    IS_TRUE(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    MUST(cuMemPoolDestroy(pool));
}

int main(void)
{
    pair_up();
    check_open();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    RUN(an_allocation_of_one_is_the_others);
    RUN(what_cannot_be_exported);
    RUN(pools_of_places);
    return check_close();
}
