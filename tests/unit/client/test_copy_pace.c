/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that come late again and again mean that others copy as well. */
#include "copy_pace.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "unit.h"

#define PIECE (512u << 10)

static void note(unsigned times, uint64_t waited_us)
{
    while (times--)
        copy_pace_note(PIECE, waited_us * NS_PER_US);
}

static void test_late_copies_make_a_crowd(void **state)
{
    assert_false(copy_pace_is_crowded());
    note(1, 130);
    assert_true(copy_pace_is_crowded());
    note(2, 18);
    assert_false(copy_pace_is_crowded());
}

static void test_nothing_is_remembered_for_long(void **state)
{
    note(1000, 130);
    assert_true(copy_pace_is_crowded());
    note(4, 18);
    assert_false(copy_pace_is_crowded());
    note(1000, 18);
    note(5, 130);
    assert_true(copy_pace_is_crowded());
}

static void test_large_pieces_take_longer(void **state)
{
    note(10, 18);
    for (int i = 0; i < 10; i++)
        copy_pace_note(1u << 20, 60 * NS_PER_US);
    assert_false(copy_pace_is_crowded());
}

/* The environment is read once, so this is a process of its own, before the others. */
static void test_switched_off(void **state)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        setenv("FUNNEL_NO_COPY_PACE", "1", 1);
        note(10, 130);
        _exit(copy_pace_is_crowded() ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_switched_off),
        cmocka_unit_test(test_late_copies_make_a_crowd),
        cmocka_unit_test(test_nothing_is_remembered_for_long),
        cmocka_unit_test(test_large_pieces_take_longer),
    };

    return cmocka_run_group_tests_name("copy pace", tests, NULL, NULL);
}
