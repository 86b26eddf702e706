/* SPDX-License-Identifier: Apache-2.0 */
/* A heap on top of a server that is played by a counter. */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "heap.h"

#define MIB (UINT64_C(1) << 20)
#define BASE UINT64_C(0x200000000000)

static struct {
    uint64_t next, limit, given;
    int granules;
} server;

static CUresult create(uint32_t device, uint64_t size, uint64_t *ret_address, int *ret_fd)
{
    if (server.given + size > server.limit)
        return CUDA_ERROR_OUT_OF_MEMORY;
    server.given += size;
    server.granules++;
    *ret_address = server.next;
    *ret_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    server.next += size;
    return CUDA_SUCCESS;
}

static void release(uint64_t address, uint64_t size)
{
    server.given -= size;
    server.granules--;
}

static const struct heap_source source = {create, release};
static struct heap heap;

static int setup(void **state)
{
    server.next = BASE;
    server.limit = 1024 * MIB;
    server.given = 0;
    server.granules = 0;
    heap_init(&heap, &source, 0, 2 * MIB);
    return 0;
}

static int teardown(void **state)
{
    suballoc_fini(&heap.blocks);
    map_fini(&heap.granules);
    return 0;
}

/* NULL when there is no memory. */
static struct allocation *take(uint64_t size)
{
    struct allocation *allocation = calloc(1, sizeof(*allocation));
    CUresult result;

    assert_non_null(allocation);
    allocation->size = size;
    result = heap_take(&heap, allocation);
    if (result == CUDA_SUCCESS)
        return allocation;
    assert_int_equal(result, CUDA_ERROR_OUT_OF_MEMORY);
    free(allocation);
    return NULL;
}

static void give(struct allocation *allocation)
{
    assert_ptr_equal(heap_give(&heap, allocation->address), allocation);
    free(allocation);
}

static void test_small_ones_share_a_granule(void **state)
{
    struct allocation *a, *b;

    a = take(100);
    b = take(100);
    assert_int_equal(server.granules, 1);
    assert_int_equal(server.given, 4 * MIB);
    give(a);
    give(b);
    assert_int_equal(heap_unused(&heap), 4 * MIB);
    heap_trim(&heap, 0);
    assert_int_equal(server.granules, 0);
}

static void test_a_large_one_has_its_own(void **state)
{
    struct allocation *a;

    a = take(100 * MIB + 1);
    assert_int_equal(server.given, 102 * MIB);
    give(a);
    assert_int_equal(server.granules, 1);
    a = take(100 * MIB);
    assert_int_equal(server.granules, 1);
    give(a);
    heap_trim(&heap, 0);
}

static void test_free_granules_are_kept_up_to_a_cap(void **state)
{
    struct allocation *a[4];

    for (int i = 0; i < 4; i++)
        a[i] = take(100 * MIB);
    for (int i = 0; i < 4; i++)
        give(a[i]);
    assert_in_range(server.given, 1, 256 * MIB);
    heap_trim(&heap, 0);
    assert_int_equal(server.given, 0);
}

static void test_when_memory_is_short_just_enough_is_asked_for(void **state)
{
    struct allocation *a;

    server.limit = 10 * MIB;
    a = take(3 * MIB);
    assert_int_equal(server.given, 4 * MIB);
    give(a);
    /* What is kept of the wrong size goes back before the heap gives up. */
    a = take(9 * MIB);
    assert_int_equal(server.given, 10 * MIB);
    give(a);
    assert_null(take(11 * MIB));
    assert_null(take(UINT64_MAX));
    heap_trim(&heap, 0);
}

static void test_allocations_are_found_by_any_address_inside(void **state)
{
    struct allocation *a, found;

    a = take(1000);
    a->id = 77;
    assert_true(heap_find(&heap, a->address + 999, &found));
    assert_int_equal(found.id, 77);
    assert_false(heap_find(&heap, a->address + 1000, &found));
    assert_null(heap_give(&heap, a->address + 512));
    give(a);
    assert_null(heap_give(&heap, found.address));
    heap_trim(&heap, 0);
}

static void test_the_allocations_of_a_context_can_be_walked(void **state)
{
    struct context *mine = (struct context *)&server;
    struct allocation *a[3], found;

    for (int i = 0; i < 3; i++)
        a[i] = take(1000);
    a[1]->context = mine;
    assert_true(heap_next(&heap, mine, 0, &found));
    assert_int_equal(found.address, a[1]->address);
    assert_false(heap_next(&heap, mine, found.address + 1, &found));
    for (int i = 0; i < 3; i++)
        give(a[i]);
    heap_trim(&heap, 0);
}

static uint64_t seen_bytes;

static CUresult see(const struct heap *seen, uint64_t address, uint64_t size, int fd)
{
    assert_ptr_equal(seen, &heap);
    assert_in_range(address, BASE, BASE + 64 * MIB);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    seen_bytes += size;
    return seen_bytes > 40 * MIB ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static void test_every_granule_is_shown_with_its_size(void **state)
{
    struct allocation *small = take(512), *large = take(20 * MIB), *larger;

    seen_bytes = 0;
    assert_int_equal(heap_for_each_granule(&heap, see), CUDA_SUCCESS);
    assert_int_equal(seen_bytes, server.given);
    larger = take(32 * MIB);
    seen_bytes = 0;
    assert_int_equal(heap_for_each_granule(&heap, see), CUDA_ERROR_OUT_OF_MEMORY);
    give(small);
    give(large);
    give(larger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_small_ones_share_a_granule, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_large_one_has_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(test_free_granules_are_kept_up_to_a_cap, setup, teardown),
        cmocka_unit_test_setup_teardown(test_when_memory_is_short_just_enough_is_asked_for, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_allocations_are_found_by_any_address_inside, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_every_granule_is_shown_with_its_size, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_allocations_of_a_context_can_be_walked, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
