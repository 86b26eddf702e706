/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Granules: ranges of device or pinned host memory that the server makes at an address of the
 * client's window. The descriptor comes over the socket, and who holds it holds the memory.
 */
#include <errno.h>
#include <sys/mman.h>

#include "cleanup.h"
#include "client_memory.h"
#include "fd.h"
#include "shm.h"
#include "sock.h"
#include "wire_calls.h"

#define RECEIVE_TIMEOUT_MS 10000

CUresult granule_receive(uint32_t kind, uint64_t address, int *ret_fd)
{
    struct socket_message message;
    size_t fd_count;
    int fd = -1;
    ssize_t bytes =
        sock_recv(client->socket, &message, sizeof(message), &fd, 1, &fd_count, RECEIVE_TIMEOUT_MS);

    if (bytes == sizeof(message) && fd_count == 1 && message.kind == kind &&
        message.value == address) {
        *ret_fd = fd;
        return CUDA_SUCCESS;
    }
    if (bytes >= 0 && fd_count == 1)
        fd_close(&fd);
    client_log("the descriptor of a granule did not come as expected (%zd bytes)", bytes);
    return CUDA_ERROR_MPS_RPC_FAILURE;
}

static void granule_release(uint64_t address, uint64_t size)
{
    struct wire_fnGranuleRelease in = {.address = address};

    channel_lock(&client->channel);
    wire_fnGranuleRelease(&client->channel, &in);
    channel_unlock(&client->channel);
}

static CUresult device_granule_create(uint32_t device, uint64_t size, uint64_t *ret_address,
                                      int *ret_fd)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->socket_lock);
    struct wire_fnGranuleCreate in = {.device = device, .size = size};
    struct wire_fnGranuleCreate_reply out;
    CUresult result = wire_fnGranuleCreate(&client->channel, &in, &out);

    if (result != CUDA_SUCCESS)
        return result;
    *ret_address = out.address;
    return granule_receive(SOCKET_GRANULE, out.address, ret_fd);
}

static CUresult send_descriptor(uint64_t size, int fd, uint32_t *ret_blob)
{
    struct socket_message message = {.kind = SOCKET_BLOB, .value = size};

    message.id = *ret_blob = __atomic_add_fetch(&client->next_blob, 1, __ATOMIC_RELAXED);
    return sock_send(client->socket, &message, sizeof(message), &fd, 1) < 0
               ? CUDA_ERROR_MPS_RPC_FAILURE
               : CUDA_SUCCESS;
}

static CUresult device_granule_replay(const struct heap *heap, uint64_t address, uint64_t size,
                                      int fd)
{
    struct wire_fnGranuleAdopt in = {.device = heap->device, .address = address, .size = size};
    CUresult result = send_descriptor(size, fd, &in.blob);

    return result != CUDA_SUCCESS ? result : wire_fnGranuleAdopt(&client->channel, &in);
}

CUresult granule_replay_host(uint64_t address, uint64_t size, int fd)
{
    struct wire_fnHostGranuleAdopt in = {.address = address, .size = size};
    CUresult result = send_descriptor(size, fd, &in.blob);

    return result != CUDA_SUCCESS ? result : wire_fnHostGranuleAdopt(&client->channel, &in);
}

static CUresult host_granule_replay(const struct heap *heap, uint64_t address, uint64_t size,
                                    int fd)
{
    return granule_replay_host(address, size, fd);
}

CUresult granule_replay_all(void)
{
    CUresult result = heap_for_each_granule(&client->host_heap, host_granule_replay);

    for (int i = 0; i < client->device_count && result == CUDA_SUCCESS; i++)
        result = heap_for_each_granule(&client->devices[i].heap, device_granule_replay);
    return result;
}

const struct heap_source device_granules = {device_granule_create, granule_release};

/* The window is reserved by an inaccessible mapping, which the granule now replaces. */
static CUresult map_granule(uint64_t address, uint64_t size, int fd)
{
    void *mapped;

    if (address < client->host_base || address + size > client->window_end)
        return CUDA_ERROR_MPS_RPC_FAILURE;
    if (shm_check(fd, size) < 0 ||
        shm_map(fd, size, (void *)(uintptr_t)address, SHM_REPLACE, &mapped) < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    madvise(mapped, size, MADV_DONTFORK);
    return CUDA_SUCCESS;
}

static CUresult host_granule_create(uint32_t device, uint64_t size, uint64_t *ret_address,
                                    int *ret_fd)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->socket_lock);
    struct wire_fnHostGranuleCreate in = {.size = size};
    struct wire_fnHostGranuleCreate_reply out;
    CUresult result = wire_fnHostGranuleCreate(&client->channel, &in, &out);
    int fd;

    if (result != CUDA_SUCCESS)
        return result;
    result = granule_receive(SOCKET_HOST_GRANULE, out.address, &fd);
    if (result != CUDA_SUCCESS)
        return result;
    result = map_granule(out.address, size, fd);
    if (result != CUDA_SUCCESS) {
        granule_release(out.address, size);
        fd_close(&fd);
        return result;
    }
    *ret_address = out.address;
    *ret_fd = fd;
    return CUDA_SUCCESS;
}

/* The address range stays reserved: nothing else of the process may come to lie there. */
static void host_granule_release(uint64_t address, uint64_t size)
{
    void *place = (void *)(uintptr_t)address;

    mmap(place, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    madvise(place, size, MADV_DONTFORK);
    granule_release(address, size);
}

const struct heap_source host_granules = {host_granule_create, host_granule_release};
