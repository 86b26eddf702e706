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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_checked),
        cmocka_unit_test(advice_is_told_again),
        cmocka_unit_test(accessors_are_listed),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(attaching_takes_the_whole_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
