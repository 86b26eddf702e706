/* SPDX-License-Identifier: Apache-2.0 */
/* A thread with a short slice has the policy and the nice value that it had. */
#include "slice.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "clock.h"
#include "unit.h"

static void nothing_else_changes(void **state)
{
    errno = 0;
    int nice_value = nice(1);

    assert_int_equal(errno, 0);
    slice_shorten(100 * NS_PER_US);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    assert_int_equal(nice(0), nice_value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_else_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
