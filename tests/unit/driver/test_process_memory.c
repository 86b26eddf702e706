/* SPDX-License-Identifier: Apache-2.0 */
/* With the library of fake_nvml.c, whose folder is the argument. */
#include "process_memory.h"

#include <stdio.h>

#include "text.h"
#include "unit.h"

static char driver_path[4096];

static void test_own_memory(void **state)
{
    uint64_t bytes = 7;

    process_memory_open(driver_path);
    assert_true(process_memory_read("0000:01:00.0", &bytes));
    assert_int_equal(bytes, 524 << 20);
    process_memory_close();
}

static void test_unknown(void **state)
{
    uint64_t bytes = 7;

    process_memory_open(driver_path);
    assert_false(process_memory_read("0000:02:00.0", &bytes));
    assert_false(process_memory_read("0000:03:00.0", &bytes));
    assert_int_equal(bytes, 7);
    process_memory_close();
}

static void test_closed(void **state)
{
    uint64_t bytes;

    assert_false(process_memory_read("0000:01:00.0", &bytes));
    process_memory_open(driver_path);
    process_memory_close();
    assert_false(process_memory_read("0000:01:00.0", &bytes));
    process_memory_close();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_memory),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_closed),
    };

    if (argc < 2)
        return 2;
    text_format(driver_path, sizeof(driver_path), "%s/libcuda.so.1", argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
