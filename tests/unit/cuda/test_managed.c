/* SPDX-License-Identifier: Apache-2.0 */
/* Advice about managed memory: what is refused, and what is told again. */
#include "unit.h"

#include "cuda_advice.h"
#include "cuda_managed.h"

#define DEVICES 2

static CUmemLocation device(int id)
{
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = id};
}

static const CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};

static const uint64_t page = 4096, all = 10 * 4096;

static int word_in(const struct cuda_advice *advice, uint64_t offset, uint64_t size,
                   CUmem_range_attribute attribute)
{
    int word = 0;

    assert_int_equal(cuda_advice_get(advice, offset, size, attribute, &word, sizeof(word)),
                     CUDA_SUCCESS);
    return word;
}

static int word_of(const struct cuda_advice *advice, CUmem_range_attribute attribute)
{
    return word_in(advice, 0, all, attribute);
}

static CUresult advise(struct cuda_advice *advice, CUmem_advise what, CUmemLocation location)
{
    return cuda_advice_take(advice, 0, all, what, location, DEVICES);
}

static struct cuda_advice *new_advice(void)
{
    struct cuda_advice *advice = cuda_advice_create(all);

    assert_non_null(advice);
    return advice;
}

static void places_are_checked(void **state)
{
    const CUmemLocation nowhere = {.type = (CUmemLocationType)99};

    (void)state;
    assert_int_equal(cuda_location_check(device(1), DEVICES), CUDA_SUCCESS);
    assert_int_equal(cuda_location_check(device(2), DEVICES), CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(cuda_location_check(device(-1), DEVICES), CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(cuda_location_check(host, DEVICES), CUDA_SUCCESS);
    assert_int_equal(cuda_location_check(nowhere, DEVICES), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda_location_of(CU_DEVICE_CPU).type, CU_MEM_LOCATION_TYPE_HOST);
    assert_int_equal(cuda_location_of(1).id, 1);
}

static void advice_is_told_again(void **state)
{
    struct cuda_advice *advice = new_advice();

    (void)state;
    assert_int_equal(word_of(advice, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_INVALID);
    assert_int_equal(advise(advice, CU_MEM_ADVISE_SET_READ_MOSTLY, device(9)),
                     CUDA_SUCCESS); /* has no location */
    assert_int_equal(word_of(advice, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 1);
    assert_int_equal(advise(advice, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device(1)), CUDA_SUCCESS);
    assert_int_equal(word_of(advice, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), 1);
    assert_int_equal(advise(advice, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host), CUDA_SUCCESS);
    assert_int_equal(word_of(advice, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_CPU);
    assert_int_equal(advise(advice, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device(2)),
                     CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(advise(advice, (CUmem_advise)99, device(0)), CUDA_ERROR_INVALID_VALUE);
    cuda_advice_destroy(advice);
}

static void accessors_are_listed(void **state)
{
    struct cuda_advice *advice = new_advice();
    int list[4];

    (void)state;
    advise(advice, CU_MEM_ADVISE_SET_ACCESSED_BY, host);
    advise(advice, CU_MEM_ADVISE_SET_ACCESSED_BY, device(0));
    advise(advice, CU_MEM_ADVISE_SET_ACCESSED_BY, device(1));
    advise(advice, CU_MEM_ADVISE_UNSET_ACCESSED_BY, device(0));
    assert_int_equal(
        cuda_advice_get(advice, 0, all, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, list, sizeof(list)),
        CUDA_SUCCESS);
    assert_int_equal(list[0], 1);
    assert_int_equal(list[1], CU_DEVICE_CPU);
    assert_int_equal(list[2], CU_DEVICE_INVALID);
    assert_int_equal(list[3], CU_DEVICE_INVALID);
    cuda_advice_destroy(advice);
}

static void sizes_are_checked(void **state)
{
    struct cuda_advice *advice = new_advice();
    int words[2];

    (void)state;
    assert_int_equal(cuda_advice_get(advice, 0, all, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, words, 8),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda_advice_get(advice, 0, all, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, words, 6),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda_advice_get(advice, 0, all, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, NULL, 4),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda_advice_get(advice, 0, all, (CUmem_range_attribute)99, words, 4),
                     CUDA_ERROR_INVALID_VALUE);
    cuda_advice_destroy(advice);
}

/* Each page has its own; a range is told what all of its pages have in common. */
static void ranges_have_their_own(void **state)
{
    struct cuda_advice *advice = new_advice();
    const CUmem_range_attribute mostly = CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                preferred = CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
                                last = CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION;

    (void)state;
    assert_int_equal(
        cuda_advice_take(advice, 2 * page + 5, page, CU_MEM_ADVISE_SET_READ_MOSTLY, host, DEVICES),
        CUDA_SUCCESS);
    assert_int_equal(word_in(advice, 2 * page, 2 * page, mostly), 1);
    assert_int_equal(word_in(advice, 2 * page, 2 * page + 1, mostly), 0);
    assert_int_equal(word_in(advice, 2 * page - 1, 2, mostly), 0);
    assert_int_equal(word_in(advice, 3 * page + 77, 1, mostly), 1);
    cuda_advice_take(advice, 0, 5 * page, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device(1), DEVICES);
    cuda_advice_take(advice, 5 * page, 5 * page, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host,
                     DEVICES);
    assert_int_equal(word_of(advice, preferred), CU_DEVICE_INVALID);
    assert_int_equal(word_in(advice, 0, 5 * page, preferred), 1);
    assert_int_equal(word_in(advice, 5 * page, 5 * page, preferred), CU_DEVICE_CPU);
    assert_int_equal(word_in(advice, 2 * page, 2 * page, mostly), 1);
    cuda_advice_prefetched(advice, page, page, device(0));
    assert_int_equal(word_in(advice, page, page, last), 0);
    assert_int_equal(word_of(advice, last), CU_DEVICE_INVALID);
    cuda_advice_prefetched(advice, 0, all, host);
    assert_int_equal(word_of(advice, last), CU_DEVICE_CPU);
    cuda_advice_destroy(advice);
}

static void common_accessors_are_listed(void **state)
{
    struct cuda_advice *advice = new_advice();
    int list[2];

    (void)state;
    cuda_advice_take(advice, 0, all, CU_MEM_ADVISE_SET_ACCESSED_BY, device(1), DEVICES);
    cuda_advice_take(advice, page, page, CU_MEM_ADVISE_SET_ACCESSED_BY, device(0), DEVICES);
    cuda_advice_get(advice, 0, all, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, list, sizeof(list));
    assert_int_equal(list[0], 1);
    assert_int_equal(list[1], CU_DEVICE_INVALID);
    cuda_advice_get(advice, page, page, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, list, sizeof(list));
    assert_int_equal(list[0], 0);
    assert_int_equal(list[1], 1);
    cuda_advice_destroy(advice);
}

/* A page at a time, at random, beside a plain table. */
static void any_sequence_is_as_expected(void **state)
{
    struct cuda_advice *advice = new_advice();
    int expected[10] = {0};
    uint32_t random = 1;

    (void)state;
    for (unsigned round = 0; round < 5000; round++) {
        random = random * 1664525u + 1013904223u;
        unsigned first = (random >> 8) % 10, count = (random >> 16) % (10 - first) + 1;
        bool set = random >> 31;

        cuda_advice_take(advice, first * page, count * page,
                         set ? CU_MEM_ADVISE_SET_READ_MOSTLY : CU_MEM_ADVISE_UNSET_READ_MOSTLY,
                         host, DEVICES);
        for (unsigned i = first; i < first + count; i++)
            expected[i] = set;
        for (unsigned i = 0; i < 10; i++)
            assert_int_equal(word_in(advice, i * page, page, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY),
                             expected[i]);
    }
    cuda_advice_destroy(advice);
}

static void attaching_takes_the_whole_allocation(void **state)
{
    CUstream stream = (CUstream)(uintptr_t)77;

    (void)state;
    assert_true(cuda_attach_is_valid(stream, 4096, 0, CU_MEM_ATTACH_SINGLE));
    assert_true(cuda_attach_is_valid(NULL, 4096, 4096, CU_MEM_ATTACH_GLOBAL));
    assert_false(cuda_attach_is_valid(NULL, 4096, 2048, CU_MEM_ATTACH_GLOBAL));
    assert_false(cuda_attach_is_valid(NULL, 4096, 0, CU_MEM_ATTACH_SINGLE));
    assert_false(cuda_attach_is_valid(CU_STREAM_LEGACY, 4096, 0, CU_MEM_ATTACH_SINGLE));
    assert_false(cuda_attach_is_valid(stream, 4096, 0, 0x80));
}

struct visits {
    unsigned count, fail_at;
    CUdeviceptr addresses[4];
    int places[4];
};

static CUresult visit(void *user, CUdeviceptr address, size_t size, CUmemLocation location)
{
    struct visits *visits = user;

    if (visits->count == visits->fail_at)
        return CUDA_ERROR_NOT_FOUND;
    assert_int_equal(size, address + 1);
    visits->addresses[visits->count] = address;
    visits->places[visits->count++] = location.id;
    return CUDA_SUCCESS;
}

static void each_range_has_the_location_before_it(void **state)
{
    const CUdeviceptr addresses[] = {10, 20, 30, 40};
    const size_t sizes[] = {11, 21, 31, 41}, firsts[] = {0, 3};
    const CUmemLocation locations[] = {{CU_MEM_LOCATION_TYPE_DEVICE, 5},
                                       {CU_MEM_LOCATION_TYPE_DEVICE, 6}};
    const struct cuda_ranges ranges = {addresses, sizes, 4, locations, firsts, 2, 0};
    struct visits visits = {.fail_at = 9};

    (void)state;
    assert_int_equal(cuda_ranges_visit(&ranges, visit, &visits), CUDA_SUCCESS);
    assert_int_equal(visits.count, 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(visits.addresses[i], addresses[i]);
        assert_int_equal(visits.places[i], i < 3 ? 5 : 6);
    }
    visits = (struct visits){.fail_at = 2};
    assert_int_equal(cuda_ranges_visit(&ranges, visit, &visits), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(visits.count, 2);
}

static void wrong_batches_are_refused_at_once(void **state)
{
    const CUdeviceptr addresses[] = {10, 20};
    const size_t sizes[] = {11, 21}, late[] = {1}, twice[] = {0, 0}, far[] = {0, 2};
    const CUmemLocation locations[2] = {{0}};
    const struct cuda_ranges wrong[] = {
        {NULL, sizes, 2, NULL, NULL, 0, 0},
        {addresses, NULL, 2, NULL, NULL, 0, 0},
        {addresses, sizes, 0, NULL, NULL, 0, 0},
        {addresses, sizes, 2, NULL, NULL, 0, 1},
        {addresses, sizes, 2, locations, NULL, 1, 0},
        {addresses, sizes, 2, locations, late, 1, 0},
        {addresses, sizes, 2, locations, twice, 2, 0},
        {addresses, sizes, 2, locations, far, 2, 0},
        {addresses, sizes, 1, locations, far, 2, 0},
        {addresses, sizes, 2, locations, twice, 0, 0},
    };
    struct visits visits = {.fail_at = 9};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(cuda_ranges_visit(&wrong[i], visit, &visits), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(visits.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_range_has_the_location_before_it),
        cmocka_unit_test(wrong_batches_are_refused_at_once),
        cmocka_unit_test(places_are_checked),
        cmocka_unit_test(advice_is_told_again),
        cmocka_unit_test(accessors_are_listed),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(ranges_have_their_own),
        cmocka_unit_test(common_accessors_are_listed),
        cmocka_unit_test(any_sequence_is_as_expected),
        cmocka_unit_test(attaching_takes_the_whole_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
