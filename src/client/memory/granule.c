/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Granules: ranges of device or pinned host memory at an address of the client's window. The server
 * makes device memory. Over the socket comes an inbox with a descriptor that keeps it alive until
 * the server takes it back (revocable.h). The memory of a client with a memory limit may come
 * without one. Host memory is made here.
 */
#include "granule.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cleanup.h"
#include "client.h"
#include "client_call.h"
#include "client_memory.h"
#include "client_socket.h"
#include "fd.h"
#include "ranges.h"
#include "recovery_hook.h"
#include "region.h"
#include "revocable.h"
#include "shm.h"
#include "wire_calls.h"

#define PAGE 4096u

/* Where there are granules, of all heaps. */
static struct {
    pthread_mutex_t lock;
    struct ranges taken;
    uint64_t releases;
    bool copies; /* the mover's: granules_take_copies() */
} granules;

void granules_init(void)
{
    pthread_mutex_init(&granules.lock, NULL);
    ranges_init(&granules.taken);
}

/* A server's word for an address is not enough. The heaps rely on it that granules lie in their
 * part of the window, and not in each other. */
static CUresult enter_granule(uint64_t address, uint64_t size, uint64_t first, uint64_t end)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&granules.lock);

    if (address % PAGE || address < first || address > end || size > end - address)
        return CUDA_ERROR_MPS_RPC_FAILURE;
    switch (ranges_add(&granules.taken, address, size, NULL)) {
    case 0:
        return CUDA_SUCCESS;
    case -ENOMEM:
        return CUDA_ERROR_OUT_OF_MEMORY;
    default:
        return CUDA_ERROR_MPS_RPC_FAILURE;
    }
}

static void leave_granule(uint64_t address)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&granules.lock);

    ranges_remove(&granules.taken, address, NULL);
    granules.releases++;
}

uint64_t granule_releases(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&granules.lock);

    return granules.releases;
}

static void granule_release(uint64_t address, uint64_t size)
{
    struct wire_fnGranuleRelease in = {.address = address};

    leave_granule(address);
    channel_lock(&client->channel);
    wire_fnGranuleRelease(&client->channel, &in);
    channel_unlock(&client->channel);
}

static CUresult create_in_device_part(uint32_t part, const struct wire_fnGranuleCreate *in,
                                      uint64_t *ret_address, int *ret_fd)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client->socket_lock);
    struct wire_fnGranuleCreate_reply out;
    uint64_t first = client->window_base + part * client->device_stride;
    _cleanup_fd_ int fd = -1;
    CUresult result = wire_fnGranuleCreate(&client->channel, in, &out);

    if (result != CUDA_SUCCESS)
        return result;
    result = client_receive_granule(out.address, &fd);
    if (result != CUDA_SUCCESS)
        return result;
    if (in->address && in->address != out.address)
        return CUDA_ERROR_MPS_RPC_FAILURE;
    result = enter_granule(out.address, in->size, first, first + client->device_stride);
    if (result != CUDA_SUCCESS)
        return result;
    *ret_address = out.address;
    *ret_fd = fd_steal(&fd);
    return CUDA_SUCCESS;
}

CUresult granule_create_adjacent(uint32_t part, bool host, uint64_t size, uint64_t span,
                                 uint64_t *address, int *ret_fd)
{
    const struct wire_fnGranuleCreate in = {.device = device_index_of(part),
                                            .host = host,
                                            .size = size,
                                            .room = span,
                                            .address = *address};

    return create_in_device_part(part, &in, address, ret_fd);
}

static CUresult device_granule_create(uint32_t part, uint64_t size, uint64_t *ret_address,
                                      int *ret_fd)
{
    *ret_address = 0;
    return granule_create_adjacent(part, false, size, size, ret_address, ret_fd);
}

CUresult granule_move(uint64_t address, bool host, int *ret_fd)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client->socket_lock);
    const struct wire_fnGranuleMove in = {.address = address, .host = host};
    CUresult result = wire_fnGranuleMove(&client->channel, &in);

    return result != CUDA_SUCCESS ? result : client_receive_granule(address, ret_fd);
}

CUresult granule_receive_inbox(uint64_t address, int fd)
{
    _cleanup_fd_ int inbox = -1;
    CUresult result = client_receive_granule(address, &inbox);

    if (result == CUDA_SUCCESS && inbox >= 0 && dup3(inbox, fd, O_CLOEXEC) < 0)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

/* The first descriptor of an inbox, or the last. */
static int take_descriptor(int fd, int *ret_memory)
{
    return granules.copies ? revocable_take_last(fd, ret_memory) : revocable_take(fd, ret_memory);
}

CUresult granule_hand_on(int fd, granule_adopt *adopt, const void *context)
{
    _cleanup_fd_ int memory = -1;

    if (take_descriptor(fd, &memory))
        return CUDA_ERROR_NOT_FOUND;
    CUresult result = adopt(context, memory, fd);
    if (result != CUDA_SUCCESS)
        revocable_put_back(fd, memory);
    return result;
}

static CUresult adopt_memory(const void *context, int memory, int inbox)
{
    struct wire_fnGranuleAdopt in = *(const struct wire_fnGranuleAdopt *)context;
    CUresult result = client_send_descriptor(memory, in.size, &in.blob);

    if (result == CUDA_SUCCESS)
        result = wire_fnGranuleAdopt(&client->channel, &in);
    return result == CUDA_SUCCESS ? granule_receive_inbox(in.address, inbox) : result;
}

static CUresult replay_in_device_part(const struct heap *heap, bool host, uint64_t address,
                                      uint64_t size, int fd)
{
    const struct wire_fnGranuleAdopt in = {
        .device = device_index_of(heap->part), .host = host, .address = address, .size = size};

    return granule_hand_on(fd, adopt_memory, &in);
}

CUresult granule_replay_device(const struct heap *heap, uint64_t address, uint64_t size, int fd)
{
    return replay_in_device_part(heap, false, address, size, fd);
}

CUresult granule_replay_hosted(const struct heap *heap, uint64_t address, uint64_t size, int fd)
{
    return replay_in_device_part(heap, true, address, size, fd);
}

CUresult granule_replay_host(uint64_t address, uint64_t size, int fd)
{
    struct wire_fnHostGranuleAdopt in = {.address = address, .size = size};
    CUresult result = client_send_descriptor(fd, size, &in.blob);

    return result != CUDA_SUCCESS ? result : wire_fnHostGranuleAdopt(&client->channel, &in);
}

static CUresult host_granule_replay(const struct heap *heap, uint64_t address, uint64_t size,
                                    int fd)
{
    return granule_replay_host(address, size, fd);
}

void granules_take_copies(bool copies)
{
    granules.copies = copies;
}

bool granule_is_kept(int fd)
{
    return fd >= 0 && revocable_is_filled(fd);
}

static CUresult check_descriptor(const struct heap *heap, uint64_t address, uint64_t size, int fd)
{
    return granule_is_kept(fd) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

static bool heap_is_whole(struct heap *heap)
{
    return heap_for_each_granule(heap, check_descriptor) == CUDA_SUCCESS;
}

bool granules_are_whole(void)
{
    bool whole = true;

    for (int i = 0; i < client->device_count && whole; i++)
        whole = heap_is_whole(memory_device_heap(&client->devices[i]));
    return whole;
}

void granule_give_up(int fd)
{
    _cleanup_fd_ int memory = -1;

    if (fd >= 0)
        revocable_take_last(fd, &memory);
}

static CUresult give_up_one(const struct heap *heap, uint64_t address, uint64_t size, int fd)
{
    granule_give_up(fd);
    return CUDA_SUCCESS;
}

void granules_give_up(void)
{
    for (int i = 0; i < client->device_count; i++)
        heap_for_each_granule(memory_device_heap(&client->devices[i]), give_up_one);
}

CUresult granule_replay_all(void)
{
    CUresult result = heap_for_each_granule(memory_host_heap(), host_granule_replay);

    for (int i = 0; i < client->device_count && result == CUDA_SUCCESS; i++)
        result =
            heap_for_each_granule(memory_device_heap(&client->devices[i]), granule_replay_device);
    return result;
}

const struct heap_source device_granules = {device_granule_create, granule_release};

/* The window is reserved by an inaccessible mapping, which the granule now replaces. */
static CUresult map_granule(uint64_t address, uint64_t size, int fd)
{
    void *mapped;

    if (shm_check(fd, size) < 0 ||
        shm_map(fd, size, (void *)(uintptr_t)address, SHM_REPLACE, &mapped) < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    madvise(mapped, size, MADV_DONTFORK);
    return CUDA_SUCCESS;
}

/* Behind the fence words and staging memory, with which the host part begins. */
static uint64_t first_host_address(void)
{
    return client->staging_address + client->staging_slots * (uint64_t)GPU_REGION_STAGING_SLOT_SIZE;
}

/* A server that has ended since the last call is noticed only here; the next one gets it. */
static CUresult send_file(int fd, uint64_t size, uint32_t *ret_blob)
{
    CUresult result = client_send_descriptor(fd, size, ret_blob);

    if (result == CUDA_SUCCESS || channel_alive(&client->channel))
        return result;
    result = recovery_error_slowly();
    return result == CUDA_SUCCESS ? client_send_descriptor(fd, size, ret_blob) : result;
}

/* To so many servers one after another the memory is shown, as each of them ends. */
#define SERVERS_TRIED 3

static CUresult bring_granule(int fd, uint64_t size, uint64_t *ret_address)
{
    struct wire_fnHostGranuleBring in = {.size = size};
    struct wire_fnHostGranuleBring_reply out;
    CUresult result = CUDA_ERROR_NOT_FOUND;

    for (int i = 0; i < SERVERS_TRIED && result == CUDA_ERROR_NOT_FOUND; i++) {
        uint64_t connection = client->socket_inode;

        result = send_file(fd, size, &in.blob);
        if (result == CUDA_SUCCESS)
            result = wire_fnHostGranuleBring(&client->channel, &in, &out);
        result = client_descriptor_result(connection, result);
    }
    if (result == CUDA_SUCCESS)
        *ret_address = out.address;
    return result;
}

/* The kernel charges pages to the cgroup of the process that creates them. */
static CUresult make_memory(uint64_t size, bool populate, int *ret_fd)
{
    _cleanup_fd_ int fd = -1;

    if (shm_create("funnel-host", size, &fd) || (populate && shm_populate(fd, size)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_fd = fd_steal(&fd);
    return CUDA_SUCCESS;
}

/* Memory that the server still has from this client; *ret_address is 0 where there is none. */
static CUresult ask_for_idle(uint64_t size, uint64_t *ret_address, bool *ret_populate, int *ret_fd)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client->socket_lock);
    const struct wire_fnHostGranuleCreate in = {.size = size};
    struct wire_fnHostGranuleCreate_reply out;
    CUresult result = wire_fnHostGranuleCreate(&client->channel, &in, &out);

    if (result != CUDA_SUCCESS)
        return result;
    *ret_address = out.address;
    *ret_populate = out.populate;
    return out.address ? client_receive_descriptor(SOCKET_HOST_GRANULE, out.address, ret_fd)
                       : CUDA_SUCCESS;
}

static CUresult take_or_make(uint64_t size, uint64_t *ret_address, int *ret_fd)
{
    bool populate;
    CUresult result = ask_for_idle(size, ret_address, &populate, ret_fd);

    if (result != CUDA_SUCCESS || *ret_address)
        return result;
    result = make_memory(size, populate, ret_fd);
    return result != CUDA_SUCCESS ? result : bring_granule(*ret_fd, size, ret_address);
}

static CUresult host_granule_create(uint32_t device, uint64_t size, uint64_t *ret_address,
                                    int *ret_fd)
{
    _cleanup_fd_ int fd = -1;
    uint64_t address;
    CUresult result = take_or_make(size, &address, &fd);

    if (result == CUDA_SUCCESS)
        result = enter_granule(address, size, first_host_address(), client->window_end);
    if (result != CUDA_SUCCESS)
        return result;
    result = map_granule(address, size, fd);
    if (result != CUDA_SUCCESS) {
        granule_release(address, size);
        return result;
    }
    *ret_address = address;
    *ret_fd = fd_steal(&fd);
    return CUDA_SUCCESS;
}

static CUresult ask_for_file(int fd, uint64_t offset, uint64_t address, uint64_t size,
                             uint64_t *ret_address)
{
    struct wire_fnHostFileMap in = {.offset = offset, .address = address, .size = size};
    struct wire_fnHostFileMap_reply out;
    CUresult result = send_file(fd, size, &in.blob);

    if (result == CUDA_SUCCESS)
        result = wire_fnHostFileMap(&client->channel, &in, &out);
    if (result == CUDA_SUCCESS)
        *ret_address = out.address;
    return result;
}

CUresult granule_replay_file(uint64_t address, uint64_t size, int fd, uint64_t offset)
{
    return ask_for_file(fd, offset, address, size, &address);
}

/* The file is the program's own, so it may be one that can be cut short. */
static CUresult map_file(int fd, uint64_t offset, uint64_t address, uint64_t size)
{
    void *place = (void *)(uintptr_t)address;

    if (mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) !=
        place)
        return CUDA_ERROR_OUT_OF_MEMORY;
    madvise(place, size, MADV_DONTFORK);
    return CUDA_SUCCESS;
}

CUresult granule_create_of_file(int fd, uint64_t offset, uint64_t size, uint64_t *ret_address)
{
    uint64_t address;
    CUresult result = ask_for_file(fd, offset, 0, size, &address);

    if (result == CUDA_SUCCESS)
        result = enter_granule(address, size, first_host_address(), client->window_end);
    if (result != CUDA_SUCCESS)
        return result;
    result = map_file(fd, offset, address, size);
    if (result != CUDA_SUCCESS) {
        granule_release(address, size);
        return result;
    }
    *ret_address = address;
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
