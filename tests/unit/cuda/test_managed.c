/* SPDX-License-Identifier: Apache-2.0 */
/* Advice about managed memory: what is refused, and what is told again. */
#include "unit.h"

#include "cuda_managed.h"

#define DEVICES 2

static CUmemLocation device(int id)
{
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = id};
}

static const CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};

static int word_of(const struct cuda_advice *advice, CUmem_range_attribute attribute)
{
    int word = 0;

    assert_int_equal(cuda_advice_get(advice, attribute, &word, sizeof(word)), CUDA_SUCCESS);
    return word;
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
    struct cuda_advice advice = {0};

    (void)state;
    assert_int_equal(word_of(&advice, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION),
                     CU_DEVICE_INVALID);
    assert_int_equal(cuda_advise(&advice, CU_MEM_ADVISE_SET_READ_MOSTLY, device(9), DEVICES),
                     CUDA_SUCCESS); /* has no location */
    assert_int_equal(word_of(&advice, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 1);
    assert_int_equal(cuda_advise(&advice, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device(1), DEVICES),
                     CUDA_SUCCESS);
    assert_int_equal(word_of(&advice, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), 1);
    assert_int_equal(cuda_advise(&advice, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host, DEVICES),
                     CUDA_SUCCESS);
    assert_int_equal(word_of(&advice, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_CPU);
    assert_int_equal(cuda_advise(&advice, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device(2), DEVICES),
                     CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(cuda_advise(&advice, (CUmem_advise)99, device(0), DEVICES),
                     CUDA_ERROR_INVALID_VALUE);
}

static void accessors_are_listed(void **state)
{
    struct cuda_advice advice = {0};
    int list[4];

    (void)state;
    cuda_advise(&advice, CU_MEM_ADVISE_SET_ACCESSED_BY, host, DEVICES);
    cuda_advise(&advice, CU_MEM_ADVISE_SET_ACCESSED_BY, device(0), DEVICES);
    cuda_advise(&advice, CU_MEM_ADVISE_SET_ACCESSED_BY, device(1), DEVICES);
    cuda_advise(&advice, CU_MEM_ADVISE_UNSET_ACCESSED_BY, device(0), DEVICES);
    assert_int_equal(
        cuda_advice_get(&advice, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, list, sizeof(list)),
        CUDA_SUCCESS);
    assert_int_equal(list[0], 1);
    assert_int_equal(list[1], CU_DEVICE_CPU);
    assert_int_equal(list[2], CU_DEVICE_INVALID);
    assert_int_equal(list[3], CU_DEVICE_INVALID);
}

static void sizes_are_checked(void **state)
{
    const struct cuda_advice advice = {0};
    int words[2];

    (void)state;
    assert_int_equal(cuda_advice_get(&advice, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, words, 8),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda_advice_get(&advice, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, words, 6),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda_advice_get(&advice, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, NULL, 4),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda_advice_get(&advice, (CUmem_range_attribute)99, words, 4),
                     CUDA_ERROR_INVALID_VALUE);
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
        cmocka_unit_test(attaching_takes_the_whole_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
