/* SPDX-License-Identifier: Apache-2.0 */
/* Records of kernels: what is written is read, and nothing beyond the bytes that are there. */
#include "kernel_record.h"

#include <string.h>

#include "unit.h"

static const uint32_t pairs[] = {0, 8, 8, 4};
static const struct kernel_facts sample = {.name = "_Z4plusPfi",
                                           .layout = pairs,
                                           .number = 7,
                                           .param_count = 2,
                                           .params_size = 12,
                                           .attributes = {1024, 1, 2, [15] = 3}};

static size_t write_sample(uint32_t *target)
{
    kernel_record_write(&sample, target);
    return kernel_record_size(&sample);
}

static void test_a_written_record_is_read(void **state)
{
    uint32_t bytes[64];
    size_t size = write_sample(bytes), step;
    struct kernel_facts facts;

    assert_int_equal(size % 4, 0);
    assert_true(kernel_record_read(bytes, sizeof(bytes), &facts, &step));
    assert_int_equal(step, size);
    assert_string_equal(facts.name, sample.name);
    assert_int_equal(facts.number, 7);
    assert_int_equal(facts.param_count, 2);
    assert_int_equal(facts.params_size, 12);
    assert_memory_equal(facts.layout, pairs, sizeof(pairs));
    assert_memory_equal(facts.attributes, sample.attributes, sizeof(facts.attributes));
}

static void test_a_kernel_without_parameters(void **state)
{
    const struct kernel_facts plain = {.name = "k"};
    uint32_t bytes[64];
    struct kernel_facts facts;
    size_t step;

    kernel_record_write(&plain, bytes);
    assert_true(kernel_record_read(bytes, kernel_record_size(&plain), &facts, &step));
    assert_string_equal(facts.name, "k");
    assert_int_equal(facts.param_count, 0);
}

static void test_a_record_that_is_cut_short_is_none(void **state)
{
    uint32_t bytes[64];
    size_t size = write_sample(bytes), step;
    struct kernel_facts facts;

    for (size_t cut = 0; cut < size; cut++)
        assert_false(kernel_record_read(bytes, cut, &facts, &step));
}

static void test_lies_are_found(void **state)
{
    uint32_t bytes[64];
    size_t size = write_sample(bytes), step;
    struct kernel_facts facts;

    bytes[0] = 0;
    assert_false(kernel_record_read(bytes, size, &facts, &step));
    bytes[0] = (uint32_t)size - 1;
    assert_false(kernel_record_read(bytes, size, &facts, &step));
    write_sample(bytes);
    bytes[2] = 0x20000000; /* parameters */
    assert_false(kernel_record_read(bytes, size, &facts, &step));
    bytes[2] = 4; /* so many that no name is left */
    assert_false(kernel_record_read(bytes, size, &facts, &step));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_written_record_is_read),
        cmocka_unit_test(test_a_kernel_without_parameters),
        cmocka_unit_test(test_a_record_that_is_cut_short_is_none),
        cmocka_unit_test(test_lies_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
