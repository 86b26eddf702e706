/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a client: where addresses lead, what a free waits for, and what reaches the server. A
 * thread plays the server and makes granules, one behind the other in the window.
 */
#include "channel_server.h"
#include "client_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "attach.h"
#include "client_fixture.h"
#include "client_prototypes.h"
#include "client_variable.h"
#include "managed_hooks.h"
#include "shm.h"
#include "sock.h"
#include "stream_commands.h"
#include "vmm_physical.h"

#define BASE WINDOW_FIRST
#define STRIDE (UINT64_C(1) << 30)
#define HOST_BASE (BASE + STRIDE)
#define PLACE_END (HOST_BASE + STRIDE)

static struct {
    pthread_t thread;
    uint64_t next_device, next_host;
    uint32_t granules, releases; /* atomic */
    uint32_t stop;               /* atomic */
    CUresult refuse;             /* what the next requests get */
} server;

static void send_granule(uint32_t kind, uint64_t address, uint64_t size)
{
    const struct socket_message message = {.kind = kind, .value = address};
    int fd = memfd_create("granule", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    sock_send(fixture.ends[1], &message, sizeof(message), &fd, 1);
    close(fd);
}

/* An address where the next granule lies; nothing is taken where requests are refused. */
static uint64_t take_place(uint64_t size, uint64_t *next)
{
    uint64_t address = *next;

    if (server.refuse == CUDA_SUCCESS) {
        *next += size;
        __atomic_add_fetch(&server.granules, 1, __ATOMIC_RELEASE);
    }
    return address;
}

static uint32_t make_device_memory(const struct ring_message *message, void *buffer)
{
    struct wire_fnGranuleCreate_reply out = {0};
    struct wire_fnGranuleCreate in;

    decode_fnGranuleCreate(message, message->size, &in);
    out.address = take_place(in.size, &server.next_device);
    if (server.refuse == CUDA_SUCCESS)
        send_granule(SOCKET_GRANULE, out.address, in.size);
    return encode_fnGranuleCreate_reply(buffer, &out);
}

/* There is none that has been given back. */
static uint32_t look_for_host_memory(void *buffer)
{
    const struct wire_fnHostGranuleCreate_reply out = {.populate = true};

    return encode_fnHostGranuleCreate_reply(buffer, &out);
}

static uint32_t take_host_memory(const struct ring_message *message, void *buffer)
{
    struct wire_fnHostGranuleBring_reply out = {0};
    struct wire_fnHostGranuleBring in;
    struct socket_message sent;
    size_t count;
    int fd = -1;

    decode_fnHostGranuleBring(message, message->size, &in);
    sock_recv(fixture.ends[1], &sent, sizeof(sent), &fd, 1, &count, 1000);
    if (sent.id == in.blob && !shm_check(fd, in.size) && shm_is_populated(fd, in.size))
        out.address = take_place(in.size, &server.next_host);
    close(fd);
    return encode_fnHostGranuleBring_reply(buffer, &out);
}

static void serve_one(const struct ring_message *message)
{
    _Alignas(8) unsigned char buffer[REPLY_DATA_MAX];
    uint32_t size;

    switch (channel_kind_op(message->kind)) {
    case WIRE_fnGranuleCreate:
        size = make_device_memory(message, buffer);
        break;
    case WIRE_fnHostGranuleCreate:
        size = look_for_host_memory(buffer);
        break;
    case WIRE_fnHostGranuleBring:
        size = take_host_memory(message, buffer);
        break;
    case WIRE_fnGranuleRelease:
        __atomic_add_fetch(&server.releases, 1, __ATOMIC_RELEASE);
        return;
    default:
        return;
    }
    channel_server_reply(fixture.server, channel_kind_slot(message->kind), server.refuse, buffer,
                         size);
}

static void *serve(void *unused)
{
    const struct ring_message *message;

    while (!__atomic_load_n(&server.stop, __ATOMIC_ACQUIRE)) {
        if (channel_server_next(fixture.server, &message) > 0)
            serve_one(message);
        else
            channel_server_wait(fixture.server, 1000000);
    }
    return NULL;
}

static void trim_nothing(void)
{
}

static bool make_no_room(uint32_t device, uint64_t size)
{
    (void)device;
    (void)size;
    return false;
}

static int setup(void **state)
{
    int r = fixture_setup(state);

    memset(&server, 0, sizeof(server));
    server.next_device = BASE;
    server.next_host = HOST_BASE;
    fixture.record.granularity = 2u << 20;
    fixture.record.total_memory = STRIDE;
    client->window_base = BASE;
    client->window_end = PLACE_END;
    client->device_stride = client->device_span = STRIDE;
    client->host_base = HOST_BASE;
    assert_int_equal(memory_init(), 0);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
    managed_hooks.trim = trim_nothing;
    managed_hooks.free_capacity = make_no_room;
    return r;
}

static int teardown(void **state)
{
    __atomic_store_n(&server.stop, 1, __ATOMIC_RELEASE);
    pthread_join(server.thread, NULL);
    munmap((void *)(uintptr_t)BASE, PLACE_END - BASE);
    return fixture_teardown(state);
}

static CUdeviceptr allocate(size_t size)
{
    CUdeviceptr address;

    assert_int_equal(client_cuMemAlloc_v2(&address, size), CUDA_SUCCESS);
    return address;
}

static uint32_t granules(void)
{
    return __atomic_load_n(&server.granules, __ATOMIC_ACQUIRE);
}

static void test_small_allocations_share_a_granule(void **state)
{
    CUdeviceptr first = allocate(1000), second = allocate(1000);

    assert_int_equal(granules(), 1);
    assert_int_not_equal(first, second);
    assert_in_range(first, BASE, HOST_BASE - 1);
    assert_int_equal(client_cuMemFree_v2(first), CUDA_SUCCESS);
    assert_int_equal(allocate(1000), first);
    assert_int_equal(granules(), 1);
}

static void test_place_of_addresses(void **state)
{
    CUdeviceptr device = allocate(1000);
    int local;
    void *pinned;

    assert_int_equal(client_cuMemHostAlloc(&pinned, 4096, 0), CUDA_SUCCESS);
    assert_int_equal(address_map_place(device, 1000), PLACE_DEVICE);
    assert_int_equal(address_map_place(device + 999, 1), PLACE_DEVICE);
    assert_int_equal(address_map_place(device, 1001), PLACE_NOWHERE);
    assert_int_equal(address_map_place((uintptr_t)pinned, 4096), PLACE_PINNED);
    assert_int_equal(address_map_place((uintptr_t)&local, sizeof(local)), PLACE_PAGEABLE);
    assert_int_equal(address_map_place(HOST_BASE - 512, 1), PLACE_NOWHERE);
}

static void test_find_gives_the_whole_allocation(void **state)
{
    CUdeviceptr device = allocate(3000);
    struct allocation allocation;

    assert_true(address_map_find(device + 2999, &allocation));
    assert_int_equal(allocation.address, device);
    assert_int_equal(allocation.size, 3000);
    assert_ptr_equal(allocation.context, fixture.context);
    assert_ptr_equal(allocation.kind, &kind_device);
    assert_false(address_map_find(device + 3000, &allocation));
}

static void test_variables_of_modules_are_device_memory(void **state)
{
    struct allocation variable = {.address = 0x7f0000001000, .size = 64, .kind = &kind_variable};

    variable_add(&variable);
    assert_int_equal(address_map_place(variable.address + 60, 4), PLACE_DEVICE);
    assert_int_equal(address_map_place(variable.address + 60, 8), PLACE_NOWHERE);
    variable_remove(variable.address);
    assert_int_equal(address_map_place(variable.address, 4), PLACE_PAGEABLE);
}

static void test_sizes_that_cannot_be(void **state)
{
    CUdeviceptr address;

    assert_int_equal(client_cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(client_cuMemAlloc_v2(&address, STRIDE + 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(granules(), 0);
}

static void test_refused_granule_is_an_error_that_leaves_nothing(void **state)
{
    CUdeviceptr address;

    server.refuse = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(client_cuMemAlloc_v2(&address, 1000), CUDA_ERROR_OUT_OF_MEMORY);
    server.refuse = CUDA_SUCCESS;
    assert_int_equal(allocate(1000), BASE);
}

static void test_only_the_start_of_an_allocation_is_freed(void **state)
{
    CUdeviceptr device = allocate(1000);
    void *pinned;

    assert_int_equal(client_cuMemHostAlloc(&pinned, 4096, 0), CUDA_SUCCESS);
    assert_int_equal(client_cuMemFree_v2(device + 8), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(client_cuMemFree_v2((uintptr_t)pinned), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(client_cuMemFreeHost((void *)(uintptr_t)device), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(client_cuMemFree_v2(device), CUDA_SUCCESS);
    assert_int_equal(client_cuMemFree_v2(device), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(client_cuMemFreeHost(pinned), CUDA_SUCCESS);
}

/* A block that was freed on a stream is the stream's at once, and others' behind its fence. */
static void test_asynchronous_free_waits_for_its_fence(void **state)
{
    CUstream handle, other;
    CUdeviceptr first, again, third;
    struct stream *stream;

    assert_int_equal(client_cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_int_equal(client_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_int_equal(stream_enter(handle, &stream), CUDA_SUCCESS);
    assert_int_equal(client_cuMemAllocAsync(&first, 4096, handle), CUDA_SUCCESS);
    stream_begin(stream);
    stream_end();
    assert_int_equal(client_cuMemFreeAsync(first, handle), CUDA_SUCCESS);
    assert_int_equal(client_cuMemFreeAsync(first, handle), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(client_cuMemAllocAsync(&third, 4096, other), CUDA_SUCCESS);
    assert_int_not_equal(third, first);
    assert_int_equal(client_cuMemAllocAsync(&again, 4096, handle), CUDA_SUCCESS);
    assert_int_equal(again, first);
}

static void test_memory_that_waits_for_its_fence_is_not_freed_once_more(void **state)
{
    CUdeviceptr freed;
    CUstream handle;
    struct stream *stream;

    assert_int_equal(client_cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_int_equal(stream_enter(handle, &stream), CUDA_SUCCESS);
    assert_int_equal(client_cuMemAllocAsync(&freed, 4096, handle), CUDA_SUCCESS);
    assert_int_equal(client_cuMemFreeAsync(freed, handle), CUDA_SUCCESS);
    assert_int_equal(client_cuMemFree_v2(freed), CUDA_ERROR_INVALID_VALUE);
}

static void test_context_takes_its_memory_along(void **state)
{
    CUdeviceptr device = allocate(1000);
    struct allocation allocation;

    memory_free_all(fixture.context);
    assert_false(address_map_find(device, &allocation));
}

static void test_a_child_of_fork_keeps_no_physical_memory(void **state)
{
    struct physical physical = {.fd = memfd_create("memory", MFD_CLOEXEC)};
    int fd = physical.fd;
    uint64_t handle = handles_add(&client->handles, WIRE_ALLOCATION, &physical);

    assert_int_not_equal(fcntl(fd, F_GETFD), -1);
    vmm_physical_after_fork_in_child();
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    handles_remove(&client->handles, WIRE_ALLOCATION, handle);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_small_allocations_share_a_granule),
        CASE(test_place_of_addresses),
        CASE(test_find_gives_the_whole_allocation),
        CASE(test_variables_of_modules_are_device_memory),
        CASE(test_sizes_that_cannot_be),
        CASE(test_refused_granule_is_an_error_that_leaves_nothing),
        CASE(test_only_the_start_of_an_allocation_is_freed),
        CASE(test_asynchronous_free_waits_for_its_fence),
        CASE(test_memory_that_waits_for_its_fence_is_not_freed_once_more),
        CASE(test_context_takes_its_memory_along),
        CASE(test_a_child_of_fork_keeps_no_physical_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
