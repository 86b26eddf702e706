/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory a client gets dma-bufs of, and that they count as other descriptors do.
 */
#include <unistd.h>

#include "attach.h"
#include "fake_driver.h"
#include "memory.h"
#include "memory_state.h"
#include "server_life.h"
#include "sock.h"
#include "vmm.h"

#define MIB (1ull << 20)
#define RESERVED (1ull << 44)

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    memory_release_all(fixture->session);
    vmm_release_all(fixture->session);
    return fixture_teardown_connected(state);
}

static CUresult ask(struct fixture *fixture, uint64_t address, uint64_t size, uint64_t flags)
{
    const struct wire_cuMemGetHandleForAddressRange in = {
        .ptr = address, .size = size, .flags = flags};

    return serve_cuMemGetHandleForAddressRange(fixture->session, &in);
}

/* The next message to the client: what it is of, and whether a descriptor came with it. */
static bool receive(struct fixture *fixture, struct socket_message *ret_message)
{
    size_t count = 0;
    int fd = -1;

    assert_int_equal(sock_recv(fixture->server.life->control_fd, ret_message, sizeof(*ret_message),
                               &fd, 1, &count, 1000),
                     sizeof(*ret_message));
    if (count)
        close(fd);
    return count == 1;
}

/* The client has its descriptor, or is told that it gets none. */
static uint64_t granule(struct fixture *fixture, uint64_t size)
{
    const struct wire_fnGranuleCreate in = {.size = size, .room = size};
    struct wire_fnGranuleCreate_reply out = {0};
    struct socket_message message;

    assert_int_equal(serve_fnGranuleCreate(fixture->session, &in, &out), CUDA_SUCCESS);
    receive(fixture, &message);
    fake_trace();
    return out.address;
}

static CUresult map(struct fixture *fixture, uint32_t index, uint64_t address)
{
    const struct wire_cuMemCreate create = {.handle = fixture_handle(WIRE_ALLOCATION, index),
                                            .size = 2 * MIB};
    const struct wire_cuMemMap map = {.handle = create.handle, .ptr = address, .size = 2 * MIB};
    const struct wire_cuMemSetAccess access = {
        .ptr = address, .size = 2 * MIB, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result = serve_cuMemCreate(fixture->session, &create);

    if (result == CUDA_SUCCESS)
        result = serve_cuMemMap(fixture->session, &map,
                                session_lookup(fixture->session, WIRE_ALLOCATION, create.handle));
    return result == CUDA_SUCCESS ? serve_cuMemSetAccess(fixture->session, &access) : result;
}

static void reserve(struct fixture *fixture, uint64_t address, uint64_t size)
{
    assert_int_equal(
        ranges_add(&fixture->session->memory->reservations, address, size, fixture->session), 0);
}

static void the_descriptor_is_sent(void **state)
{
    struct fixture *fixture = *state;
    uint64_t address = granule(fixture, 4 * MIB);
    struct socket_message message;

    assert_int_equal(ask(fixture, address + MIB, 3 * MIB, 1), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "range 3145728 type 1 flags 1; ");
    assert_true(receive(fixture, &message));
    assert_int_equal(message.kind, SOCKET_DMA_BUF);
    assert_int_equal(message.value, address + MIB);
}

static void only_the_clients_own_memory(void **state)
{
    struct fixture *fixture = *state;
    uint64_t first = granule(fixture, 4 * MIB), second = granule(fixture, 2 * MIB);
    const struct granule others = {
        .kind = GRANULE_IMPORTED, .address = second + 2 * MIB, .size = 2 * MIB, .fd = -1};

    assert_int_equal(memory_allow(fixture->session, &others), CUDA_SUCCESS);
    assert_int_equal(ask(fixture, first, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ask(fixture, first, 4 * MIB + 1, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ask(fixture, first, 6 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ask(fixture, first + MIB, UINT64_MAX, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ask(fixture, first - 4096, 8192, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ask(fixture, others.address, MIB, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ask(fixture, first, MIB, 2), CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(fake_trace(), "");
    assert_int_equal(ask(fixture, second, 2 * MIB, 0), CUDA_SUCCESS);
}

static void mappings_in_a_row(void **state)
{
    struct fixture *fixture = *state;

    reserve(fixture, RESERVED, 6 * MIB);
    assert_int_equal(map(fixture, 1, RESERVED), CUDA_SUCCESS);
    assert_int_equal(map(fixture, 2, RESERVED + 2 * MIB), CUDA_SUCCESS);
    assert_int_equal(ask(fixture, RESERVED + MIB, 3 * MIB, 0), CUDA_SUCCESS);
    assert_int_equal(ask(fixture, RESERVED + MIB, 4 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ask(fixture, RESERVED + MIB, UINT64_MAX, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ask(fixture, RESERVED + 4 * MIB, MIB, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ask(fixture, RESERVED - 4096, 8192, 0), CUDA_ERROR_INVALID_VALUE);
}

static void refusals_of_the_driver(void **state)
{
    struct fixture *fixture = *state;
    uint64_t address = granule(fixture, 2 * MIB);

    fake.refusal = CUDA_ERROR_NOT_SUPPORTED;
    assert_int_equal(ask(fixture, address, MIB, 0), CUDA_ERROR_NOT_SUPPORTED);
    driver.cuMemGetHandleForAddressRange = NULL;
    assert_int_equal(ask(fixture, address, MIB, 0), CUDA_ERROR_NOT_SUPPORTED);
}

/* A granule counts once, whether its client has it as a granule, as a dma-buf, or as ten. */
static void descriptors_count_once(void **state)
{
    struct fixture *fixture = *state;
    uint64_t first, second;

    fixture->session->limits.memory[0] = 4 * MIB;
    first = granule(fixture, 4 * MIB);
    assert_int_equal(fixture->session->memory->device[0].given, 4 * MIB);
    for (int i = 0; i < 10; i++)
        assert_int_equal(ask(fixture, first, MIB, 0), CUDA_SUCCESS);
    assert_int_equal(fixture->session->memory->device[0].given, 4 * MIB);

    const struct wire_fnGranuleRelease release = {.address = first};
    assert_int_equal(serve_fnGranuleRelease(fixture->session, &release), CUDA_SUCCESS);
    second = granule(fixture, 2 * MIB);
    assert_int_equal(ask(fixture, second, MIB, 0), CUDA_ERROR_NOT_PERMITTED);
}

static void descriptors_of_mappings_count_once(void **state)
{
    struct fixture *fixture = *state;
    uint64_t *given = &fixture->session->memory->device[0].given;

    fixture->session->limits.memory[0] = 4 * MIB;
    reserve(fixture, RESERVED, 4 * MIB);
    assert_int_equal(map(fixture, 1, RESERVED), CUDA_SUCCESS);
    assert_int_equal(map(fixture, 2, RESERVED + 2 * MIB), CUDA_SUCCESS);
    assert_int_equal(*given, 4 * MIB);
    assert_int_equal(ask(fixture, RESERVED, MIB, 0), CUDA_SUCCESS);
    assert_int_equal(ask(fixture, RESERVED, 4 * MIB, 0), CUDA_SUCCESS);
    assert_int_equal(*given, 4 * MIB);
    *given = 4 * MIB + 1;
    assert_int_equal(ask(fixture, RESERVED, 4 * MIB, 0), CUDA_SUCCESS);
}

static void memory_is_made_for_adapters(void **state)
{
    struct fixture *fixture = *state;
    int32_t *attributes = fixture->server.devices.device[0].record.attributes;

    granule(fixture, 2 * MIB);
    assert_int_equal(fake.made.allocFlags.gpuDirectRDMACapable, 0);
    attributes[CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED] = 1;
    granule(fixture, 2 * MIB);
    assert_int_equal(fake.made.allocFlags.gpuDirectRDMACapable, 1);
    reserve(fixture, RESERVED, 2 * MIB);
    fake.made.allocFlags.gpuDirectRDMACapable = 0;
    assert_int_equal(map(fixture, 1, RESERVED), CUDA_SUCCESS);
    assert_int_equal(fake.made.allocFlags.gpuDirectRDMACapable, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup_connected, teardown)
    const struct CMUnitTest tests[] = {
        CASE(the_descriptor_is_sent),      CASE(only_the_clients_own_memory),
        CASE(mappings_in_a_row),           CASE(refusals_of_the_driver),
        CASE(descriptors_count_once),      CASE(descriptors_of_mappings_count_once),
        CASE(memory_is_made_for_adapters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
