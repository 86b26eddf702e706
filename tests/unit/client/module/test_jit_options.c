/* SPDX-License-Identifier: Apache-2.0 */
/* JIT options: those that travel, those that name buffers of the program, and the log there. */
#include "jit_options.h"

#include <string.h>

#include "unit.h"

#define VALUE(number) ((void *)(uintptr_t)(number))

static void test_numbers_travel_as_pairs(void **state)
{
    CUjit_option names[] = {CU_JIT_MAX_REGISTERS, CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_WALL_TIME};
    void *values[] = {VALUE(32), VALUE(3), VALUE(0)};
    const uint64_t expected[] = {CU_JIT_MAX_REGISTERS, 32, CU_JIT_OPTIMIZATION_LEVEL, 3};
    struct jit_options options;

    assert_int_equal(jit_options_read(&options, 3, names, values), CUDA_SUCCESS);
    assert_int_equal(options.size, sizeof(expected));
    assert_memory_equal(options.pairs, expected, sizeof(expected));
}

static void test_more_than_there_is_space_for_are_left_out(void **state)
{
    CUjit_option names[40];
    void *values[40];
    struct jit_options options;

    for (unsigned i = 0; i < 40; i++) {
        names[i] = CU_JIT_MAX_REGISTERS;
        values[i] = VALUE(i);
    }
    assert_int_equal(jit_options_read(&options, 40, names, values), CUDA_SUCCESS);
    assert_int_equal(options.size, sizeof(options.pairs));
}

static void test_missing_arrays_are_refused(void **state)
{
    CUjit_option name = CU_JIT_MAX_REGISTERS;
    void *value = NULL;
    struct jit_options options;

    assert_int_equal(jit_options_read(&options, 1, NULL, &value), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(jit_options_read(&options, 1, &name, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(jit_options_read(&options, 0, NULL, NULL), CUDA_SUCCESS);
}

static void read_log_buffer(struct jit_options *options, char *buffer, void **values)
{
    CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};

    values[0] = buffer;
    values[1] = VALUE(8);
    assert_int_equal(jit_options_read(options, 2, names, values), CUDA_SUCCESS);
}

static void test_log_goes_to_the_buffer_and_its_size_to_the_option(void **state)
{
    char buffer[16] = "................";
    struct jit_options options;
    void *values[2];

    read_log_buffer(&options, buffer, values);
    jit_log_write(&options.error, "abc", 3);
    assert_string_equal(buffer, "abc");
    assert_int_equal((unsigned)(uintptr_t)values[1], 3);
    jit_log_write(&options.info, "nowhere", 7);
}

static void test_log_is_cut_to_the_buffer(void **state)
{
    char buffer[16] = "................";
    struct jit_options options;
    void *values[2];

    read_log_buffer(&options, buffer, values);
    jit_log_write(&options.error, "0123456789", 10);
    assert_string_equal(buffer, "0123456");
    assert_int_equal(buffer[8], '.');
    assert_int_equal((unsigned)(uintptr_t)values[1], 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_travel_as_pairs),
        cmocka_unit_test(test_more_than_there_is_space_for_are_left_out),
        cmocka_unit_test(test_missing_arrays_are_refused),
        cmocka_unit_test(test_log_goes_to_the_buffer_and_its_size_to_the_option),
        cmocka_unit_test(test_log_is_cut_to_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
