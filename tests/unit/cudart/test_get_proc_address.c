/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuGetProcAddress answers as NVIDIA's driver was seen to.
 */
#include "fake_driver.h"

static char alloc_v1, alloc_v2, create_v2, create_v3, create_v4, launch, launch_ptsz, get_v1,
    get_v2;

static const struct entry_point table[] = {
    {"cuCtxCreate", 0, 3020, &create_v2},      {"cuCtxCreate", 0, 11040, &create_v3},
    {"cuCtxCreate", 0, 12050, &create_v4},     {"cuGetProcAddress", 0, 11030, &get_v1},
    {"cuGetProcAddress", 0, 12000, &get_v2},   {"cuLaunchKernel", 0, 4000, &launch},
    {"cuLaunchKernel", 2, 7000, &launch_ptsz}, {"cuMemAlloc", 0, 2000, &alloc_v1},
    {"cuMemAlloc", 0, 3020, &alloc_v2},
};

static CUresult ask(const char *symbol, void **ret_function, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult *ret_status)
{
    return cudart_get_proc_address(table, sizeof(table) / sizeof(table[0]), symbol, ret_function,
                                   version, flags, ret_status, FAKE_DRIVER_VERSION);
}

static void check(const char *symbol, int version, cuuint64_t flags, void *expected,
                  CUdriverProcAddressQueryResult expected_status)
{
    void *function = &function;
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)99;

    assert_int_equal(ask(symbol, &function, version, flags, &status), CUDA_SUCCESS);
    assert_ptr_equal(function, expected);
    assert_int_equal(status, expected_status);
}

static void test_the_newest_that_is_not_newer(void **state)
{
    check("cuMemAlloc", 2000, 0, &alloc_v1, CU_GET_PROC_ADDRESS_SUCCESS);
    check("cuMemAlloc", 3010, 0, &alloc_v1, CU_GET_PROC_ADDRESS_SUCCESS);
    check("cuMemAlloc", 3020, 0, &alloc_v2, CU_GET_PROC_ADDRESS_SUCCESS);
    check("cuCtxCreate", 11040, 0, &create_v3, CU_GET_PROC_ADDRESS_SUCCESS);
    check("cuCtxCreate", 12050, 0, &create_v4, CU_GET_PROC_ADDRESS_SUCCESS);
    check("cuCtxCreate", 13000, 0, &create_v4, CU_GET_PROC_ADDRESS_SUCCESS);
    check("cuGetProcAddress", 11030, 0, &get_v1, CU_GET_PROC_ADDRESS_SUCCESS);
    check("cuGetProcAddress", 12000, 0, &get_v2, CU_GET_PROC_ADDRESS_SUCCESS);
}

static void test_default_streams(void **state)
{
    check("cuLaunchKernel", 7000, 0, &launch, CU_GET_PROC_ADDRESS_SUCCESS);
    check("cuLaunchKernel", 7000, 1, &launch, CU_GET_PROC_ADDRESS_SUCCESS);
    check("cuLaunchKernel", 7000, 2, &launch_ptsz, CU_GET_PROC_ADDRESS_SUCCESS);
    check("cuLaunchKernel", 4000, 2, NULL, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    check("cuMemAlloc", 13000, 2, &alloc_v2, CU_GET_PROC_ADDRESS_SUCCESS);
}

static void test_a_missing_symbol_is_no_error(void **state)
{
    void *function = &function;

    check("", 0, 0, NULL, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    check("cuNope", 12000, 0, NULL, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    check("cuMemAlloc_v2", 12000, 0, NULL, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    check("zzz", 12000, 0, NULL, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    check("cuCtxCreate", 3010, 0, NULL, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    assert_int_equal(ask("cuNope", &function, 12000, 0, NULL), CUDA_SUCCESS);
    assert_null(function);
}

static void test_refusals_touch_nothing(void **state)
{
    void *function = &function;
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)99;

    assert_int_equal(ask("cuMemAlloc", &function, 12000, 7, &status), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ask("cuMemAlloc", &function, FAKE_DRIVER_VERSION + 10, 0, &status),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ask(NULL, &function, 12000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ask("cuMemAlloc", NULL, 12000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    assert_ptr_equal(function, &function);
    assert_int_equal(status, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_newest_that_is_not_newer),
        cmocka_unit_test(test_default_streams),
        cmocka_unit_test(test_a_missing_symbol_is_no_error),
        cmocka_unit_test(test_refusals_touch_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
