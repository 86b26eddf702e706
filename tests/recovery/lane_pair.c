/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes of different classes, and so of different servers: lane_pair OWNER OPENER. The
 * first gives the second memory by a descriptor, which works. It also gives memory and an event by
 * names of cuIpc. Normal programs move to the lane of such a name, others cannot open it. Says what
 * went wrong.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_abi.h"
#include "cuda_prototypes.h"
#include "sock.h"

#define TIMEOUT_MS 60000
#define VALUE 11u
#define CHANGED 12u
#define OWN 13u

#define MUST(call) must(call, #call)

static void must(CUresult result, const char *call)
{
    if (result == CUDA_SUCCESS)
        return;
    printf("%s: %d\n", call, (int)result);
    exit(EXIT_FAILURE);
}

static void is_true(bool condition, const char *what)
{
    if (condition)
        return;
    printf("not: %s\n", what);
    exit(EXIT_FAILURE);
}

static const CUmemAllocationProp prop = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

static void open_device(const char *class)
{
    CUcontext context;

    setenv("FUNNEL_CLASS", class, 1);
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
}

static CUdeviceptr map_memory(CUmemGenericAllocationHandle handle)
{
    const CUmemAccessDesc access = {.location = prop.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    size_t size;
    CUdeviceptr address;

    MUST(cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MUST(cuMemAddressReserve(&address, size, 0, 0, 0));
    MUST(cuMemMap(address, size, 0, handle, 0));
    MUST(cuMemSetAccess(address, size, &access, 1));
    return address;
}

static void receive(int socket, void *data, size_t size, int *ret_fd)
{
    size_t count = 0;
    ssize_t got = sock_recv(socket, data, size, ret_fd, ret_fd ? 1 : 0, &count, TIMEOUT_MS);

    is_true(got == (ssize_t)size && count == (ret_fd ? 1 : 0), "a message of the other process");
}

struct names {
    CUipcMemHandle memory;
    CUipcEventHandle event;
};

static void fail_to_open(const struct names *names)
{
    CUdeviceptr opened;
    CUevent event;

    is_true(cuIpcOpenMemHandle_v2(&opened, names->memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) ==
                CUDA_ERROR_INVALID_VALUE,
            "CUDA_ERROR_INVALID_VALUE for memory of another server");
    is_true(cuIpcOpenEventHandle(&event, names->event) == CUDA_ERROR_INVALID_VALUE,
            "CUDA_ERROR_INVALID_VALUE for an event of another server");
}

static void change(CUdeviceptr memory, const char *whose)
{
    uint32_t word = 0;

    MUST(cuMemcpyDtoH_v2(&word, memory, sizeof(word)));
    is_true(word == VALUE, whose);
    MUST(cuMemsetD32_v2(memory, CHANGED, 1));
    MUST(cuCtxSynchronize());
}

/* Two threads at a time, each of which would move the program. */
struct opening {
    const struct names *names;
    CUcontext context;
    pthread_barrier_t both;
};

static void *open_event(void *context)
{
    struct opening *opening = context;
    CUevent event;

    MUST(cuCtxSetCurrent(opening->context));
    pthread_barrier_wait(&opening->both);
    MUST(cuIpcOpenEventHandle(&event, opening->names->event));
    MUST(cuEventSynchronize(event));
    return NULL;
}

static CUdeviceptr open_both(const struct names *names)
{
    struct opening opening = {.names = names};
    CUdeviceptr opened;
    pthread_t thread;

    MUST(cuCtxGetCurrent(&opening.context));
    pthread_barrier_init(&opening.both, NULL, 2);
    is_true(!pthread_create(&thread, NULL, open_event, &opening), "a thread");
    pthread_barrier_wait(&opening.both);
    MUST(cuIpcOpenMemHandle_v2(&opened, names->memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&opening.both);
    return opened;
}

/* The program moves to their lane, with its own memory. An unknown name moves no program. */
static void open_names(const struct names *names)
{
    CUdeviceptr own, opened, again;
    CUipcMemHandle wrong = names->memory;
    uint32_t word = 0;

    MUST(cuMemAlloc_v2(&own, 4096));
    MUST(cuMemsetD32_v2(own, OWN, 1));
    wrong.reserved[20] ^= 1;
    opened = open_both(names);
    is_true(cuIpcOpenMemHandle_v2(&opened, wrong, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) ==
                CUDA_ERROR_INVALID_VALUE,
            "CUDA_ERROR_INVALID_VALUE for an unknown name");
    MUST(cuIpcOpenMemHandle_v2(&again, names->memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    is_true(opened == again, "one address for a name");
    change(opened, "the program reads what the owner of the name has written");
    MUST(cuMemcpyDtoH_v2(&word, own, sizeof(word)));
    is_true(word == OWN, "its own memory has come along");
}

static int take(int socket, const char *class)
{
    CUmemGenericAllocationHandle handle;
    struct names names;
    int fd = -1;

    open_device(class);
    receive(socket, &names, sizeof(names), &fd);
    if (strcmp(class, "normal"))
        fail_to_open(&names);
    else
        open_names(&names);
    MUST(cuMemImportFromShareableHandle(&handle, (void *)(uintptr_t)fd,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    change(map_memory(handle), "the program reads what the owner of the descriptor has written");
    is_true(!sock_send(socket, "x", 1, NULL, 0), "a message to the other process");
    return EXIT_SUCCESS;
}

static void give(int socket, const char *class)
{
    CUmemGenericAllocationHandle handle;
    struct names names;
    CUdeviceptr named;
    CUevent event;
    size_t size;
    uint32_t word = 0;
    int fd = -1;
    char byte;

    open_device(class);
    MUST(cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MUST(cuMemCreate(&handle, size, &prop, 0));
    CUdeviceptr memory = map_memory(handle);
    MUST(cuMemsetD32_v2(memory, VALUE, 1));
    MUST(cuMemAlloc_v2(&named, 4096));
    MUST(cuMemsetD32_v2(named, VALUE, 1));
    MUST(cuIpcGetMemHandle(&names.memory, named));
    MUST(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    MUST(cuIpcGetEventHandle(&names.event, event));
    MUST(cuCtxSynchronize());
    MUST(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    is_true(!sock_send(socket, &names, sizeof(names), &fd, 1), "a message to the other process");
    receive(socket, &byte, sizeof(byte), NULL);
    MUST(cuMemcpyDtoH_v2(&word, memory, sizeof(word)));
    is_true(word == CHANGED, "the first program reads what the other has written");
}

int main(int argc, char **argv)
{
    int sockets[2], status = -1;

    is_true(argc == 3, "two classes");
    is_true(!sock_pair(sockets), "two sockets");
    pid_t child = fork();
    if (child == 0) {
        close(sockets[0]);
        return take(sockets[1], argv[2]);
    }
    close(sockets[1]);
    give(sockets[0], argv[1]);
    waitpid(child, &status, 0);
    is_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS, "the end of the other");
    return EXIT_SUCCESS;
}
