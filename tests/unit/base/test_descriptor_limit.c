/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of open files, and whether it is reached. */
#include "descriptor_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include "unit.h"

static void set_limit(rlim_t soft, rlim_t hard)
{
    const struct rlimit limit = {.rlim_cur = soft, .rlim_max = hard};

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void test_a_limit_that_is_raised(void **state)
{
    set_limit(32, 64);
    assert_int_equal(descriptor_limit(), 32);
    assert_int_equal(descriptor_limit_raise(), 64);
    assert_int_equal(descriptor_limit(), 64);
}

static void test_descriptors_that_are_left(void **state)
{
    int next = dup(0);

    assert_true(next > 0);
    close(next);
    set_limit((rlim_t)next + 2, 64);
    assert_false(descriptors_are_short(2));
    assert_true(descriptors_are_short(3));
    assert_true(descriptors_are_short(2 * DESCRIPTORS_TRIED));
    assert_int_equal(dup(0), next); /* none of them is left open */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_limit_that_is_raised),
        cmocka_unit_test(test_descriptors_that_are_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
