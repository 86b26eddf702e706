/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of cuMemCreate that leaves and returns: where the server copies it, and what the driver
 * gets to do when all mappings come again.
 */
#include "allocation_place.h"
#include "fake_driver.h"
#include "memory_state.h"
#include "vmm.h"

#define PIECE (2ull << 20)
#define RESERVED (1ull << 44)

static CUresult reserve_addresses(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                  unsigned long long flags)
{
    (void)size;
    (void)alignment;
    (void)flags;
    *ptr = addr;
    return CUDA_SUCCESS;
}

static int setup(void **state)
{
    fixture_setup_connected(state);
    struct fixture *fixture = *state;

    driver.cuMemAddressReserve = reserve_addresses;
    ranges_add(&fixture->session->memory->reservations, RESERVED, 8 * PIECE, fixture->session);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    memory_release_all(fixture->session);
    vmm_release_all(fixture->session);
    return fixture_teardown_connected(state);
}

static struct allocation *create(struct fixture *fixture, uint64_t size)
{
    const struct wire_cuMemCreate in = {.handle = fixture_handle(WIRE_ALLOCATION, 1), .size = size};

    assert_int_equal(serve_cuMemCreate(fixture->session, &in), CUDA_SUCCESS);
    fake_trace();
    return session_lookup(fixture->session, WIRE_ALLOCATION, in.handle);
}

static void map(struct fixture *fixture, struct allocation *allocation, unsigned place,
                uint64_t size, uint32_t flags)
{
    const struct wire_cuMemMap in = {.ptr = RESERVED + place * PIECE, .size = size};
    const struct wire_cuMemSetAccess access = {.ptr = in.ptr, .size = size, .flags = flags};

    assert_int_equal(serve_cuMemMap(fixture->session, &in, allocation), CUDA_SUCCESS);
    assert_int_equal(serve_cuMemSetAccess(fixture->session, &access), CUDA_SUCCESS);
    fake_trace();
}

static void a_mapping_that_can_be_written_is_used(void **state)
{
    struct fixture *fixture = *state;
    struct allocation *allocation = create(fixture, 2 * PIECE);

    map(fixture, allocation, 0, 2 * PIECE, CU_MEM_ACCESS_FLAGS_PROT_READ);
    map(fixture, allocation, 2, PIECE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    map(fixture, allocation, 4, 2 * PIECE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    assert_int_equal(allocation_open(fixture->session, allocation), CUDA_SUCCESS);
    assert_int_equal(allocation->memory.address, RESERVED + 4 * PIECE);
    allocation_close(fixture->session, allocation);
    assert_string_equal(fake_trace(), "");
}

static void any_other_is_mapped_elsewhere(void **state)
{
    struct fixture *fixture = *state;
    struct allocation *allocation = create(fixture, PIECE);

    map(fixture, allocation, 0, PIECE, CU_MEM_ACCESS_FLAGS_PROT_READ);
    assert_int_equal(allocation_open(fixture->session, allocation), CUDA_SUCCESS);
    assert_int_not_equal(allocation->memory.address, RESERVED);
    assert_string_equal(fake_trace(), "map g1; access; ");
    allocation_close(fixture->session, allocation);
    assert_string_equal(fake_trace(), "unmap 2097152; ");
    assert_int_equal(fixture->server.memory->reserve_area.used.count, 0);
}

static void all_mappings_leave_and_return(void **state)
{
    struct fixture *fixture = *state;
    struct allocation *allocation = create(fixture, PIECE);

    map(fixture, allocation, 0, PIECE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    map(fixture, allocation, 1, PIECE, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    allocation_unmap_all(fixture->session, allocation);
    assert_string_equal(fake_trace(), "unmap 2097152; unmap 2097152; ");
    assert_int_equal(allocation_map_all(fixture->session, allocation), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "map g1; access; map g1; ");
    assert_int_equal(allocation->memory.address, RESERVED);
}

static void a_return_that_the_driver_refuses(void **state)
{
    struct fixture *fixture = *state;
    struct allocation *allocation = create(fixture, PIECE);

    map(fixture, allocation, 0, PIECE, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    allocation_unmap_all(fixture->session, allocation);
    fake_trace();
    fake.refusal = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(allocation_map_all(fixture->session, allocation), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(allocation->memory.address, 0);
    assert_int_equal(allocation_map_all(fixture->session, allocation), CUDA_SUCCESS);
    allocation_close(fixture->session, allocation);
}

static CUresult export_nothing(void *ret_fd, CUmemGenericAllocationHandle handle,
                               CUmemAllocationHandleType type, unsigned long long flags)
{
    (void)ret_fd;
    (void)handle;
    (void)type;
    (void)flags;
    return CUDA_ERROR_OPERATING_SYSTEM;
}

static void memory_without_a_descriptor_is_there(void **state)
{
    struct fixture *fixture = *state;

    driver.cuMemExportToShareableHandle = export_nothing;
    assert_int_equal(create(fixture, PIECE)->memory.kept.inbox, -1);
}

static void kernels_reach_what_is_mapped_whole(void **state)
{
    struct fixture *fixture = *state;
    struct allocation *allocation = create(fixture, 2 * PIECE);

    assert_false(vmm_is_reached(fixture->session, 0));
    map(fixture, allocation, 0, 2 * PIECE, CU_MEM_ACCESS_FLAGS_PROT_READ);
    assert_true(vmm_is_reached(fixture->session, 0));
    map(fixture, allocation, 2, PIECE, CU_MEM_ACCESS_FLAGS_PROT_READ);
    assert_false(vmm_is_reached(fixture->session, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_mapping_that_can_be_written_is_used, setup, teardown),
        cmocka_unit_test_setup_teardown(any_other_is_mapped_elsewhere, setup, teardown),
        cmocka_unit_test_setup_teardown(all_mappings_leave_and_return, setup, teardown),
        cmocka_unit_test_setup_teardown(a_return_that_the_driver_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_without_a_descriptor_is_there, setup, teardown),
        cmocka_unit_test_setup_teardown(kernels_reach_what_is_mapped_whole, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
