/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of an address: how wide it is, and where there is nothing to tell. */
#include "unit.h"

#include <string.h>

#include "cuda_pointer.h"

static const struct cuda_pointer on_device = {
    .address = 0x1010,
    .known = true,
    .on_device = 0x1010,
    .type = CU_MEMORYTYPE_DEVICE,
    .device = 1,
    .start = 0x1000,
    .size = 0x100,
};
static const struct cuda_pointer unknown = {.address = 0x9000};

static void only_the_attribute_is_written(void **state)
{
    unsigned char bytes[16];

    (void)state;
    memset(bytes, 0xee, sizeof(bytes));
    assert_int_equal(cuda_pointer_get(&on_device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, bytes),
                     CUDA_SUCCESS);
    assert_int_equal(bytes[0], 1);
    assert_int_equal(bytes[3], 0);
    assert_int_equal(bytes[4], 0xee);
    assert_int_equal(cuda_pointer_get(&on_device, CU_POINTER_ATTRIBUTE_IS_MANAGED, bytes + 8),
                     CUDA_SUCCESS);
    assert_int_equal(bytes[11], 0); /* four bytes of a boolean */
    assert_int_equal(bytes[12], 0xee);
}

static void ranges_are_told(void **state)
{
    CUdeviceptr start;
    size_t size;

    (void)state;
    assert_int_equal(cuda_pointer_get(&on_device, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, &start),
                     CUDA_SUCCESS);
    assert_int_equal(cuda_pointer_get(&on_device, CU_POINTER_ATTRIBUTE_RANGE_SIZE, &size),
                     CUDA_SUCCESS);
    assert_int_equal(start, 0x1000);
    assert_int_equal(size, 0x100);
}

/* As NVIDIA's driver does: zeroes, and yet an error. */
static void a_missing_attribute_is_an_error(void **state)
{
    uint64_t value = 1;

    (void)state;
    assert_int_equal(cuda_pointer_get(&on_device, CU_POINTER_ATTRIBUTE_HOST_POINTER, &value),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(value, 0);
    assert_int_equal(cuda_pointer_get(&unknown, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &value),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda_pointer_get(&on_device, (CUpointer_attribute)99, &value),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda_pointer_get(&on_device, (CUpointer_attribute)0, &value),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda_pointer_get(&on_device, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, NULL),
                     CUDA_ERROR_INVALID_VALUE);
}

static void several_of_an_unknown_address(void **state)
{
    const CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    unsigned type = 7;
    uint64_t host = 0, size = 42;
    int device = 7;
    void *const data[] = {&type, &host, &device, &size};

    (void)state;
    assert_int_equal(cuda_pointer_get_all(&unknown, 4, attributes, data), CUDA_SUCCESS);
    assert_int_equal(type, 0);
    assert_int_equal(host, 0x9000);
    assert_int_equal(device, CU_DEVICE_INVALID);
    assert_int_equal(size, 42); /* stays as it was */
}

static void several_with_one_that_is_wrong(void **state)
{
    const CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                              CU_POINTER_ATTRIBUTE_P2P_TOKENS};
    uint64_t words[4] = {0};
    void *const data[] = {&words[0], &words[1]}, *const holes[] = {&words[0], NULL};

    (void)state;
    assert_int_equal(cuda_pointer_get_all(&on_device, 2, attributes, data),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda_pointer_get_all(&on_device, 2, attributes, holes),
                     CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_attribute_is_written),
        cmocka_unit_test(ranges_are_told),
        cmocka_unit_test(a_missing_attribute_is_an_error),
        cmocka_unit_test(several_of_an_unknown_address),
        cmocka_unit_test(several_with_one_that_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
