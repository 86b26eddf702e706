/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many clients a server has addresses for.
 */
#include "fake_driver.h"
#include "window.h"

#define GIB (1ull << 30)

static unsigned limit_for(uint64_t memory)
{
    const struct devices devices = {.count = 1, .stride = memory + memory / 4 + GIB};

    return windows_limit(&devices);
}

static void hundreds_of_clients_on_large_devices(void **state)
{
    (void)state;
    assert_true(limit_for(141 * GIB) >= 256);
    assert_true(limit_for(80 * GIB) >= 400);
    assert_true(limit_for(8 * GIB) >= 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hundreds_of_clients_on_large_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
