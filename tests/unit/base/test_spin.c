/* SPDX-License-Identifier: Apache-2.0 */
/* The budget follows the CPUs and the environment. It is worked out once a process, so each case is
 * a process of its own. */
#include "spin.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static uint64_t budget_on_one_cpu(void)
{
    cpu_set_t set, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof(set), &set);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &set))
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    return spin_budget_ns();
}

static uint64_t budget_with_no_spin(void)
{
    setenv("FUNNEL_NO_SPIN", "1", 1);
    struct spin spin = spin_begin();
    return spin_more(&spin) ? UINT64_MAX : spin_budget_ns();
}

static bool child_finds(uint64_t (*budget)(void), uint64_t expected)
{
    pid_t child = fork();
    if (child == 0)
        _exit(budget() == expected ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status == 0;
}

static void test_few_cpus_spin_shortly(void **state)
{
    assert_true(child_finds(budget_on_one_cpu, 2000));
}

static void test_switched_off(void **state)
{
    assert_true(child_finds(budget_with_no_spin, 0));
}

static void test_a_spin_ends(void **state)
{
    struct spin spin = {.budget = 1000};
    while (spin_more(&spin))
        ;
    assert_true(spin.rounds > 0);
}

int main(void)
{
    unsetenv("FUNNEL_NO_SPIN");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_cpus_spin_shortly),
        cmocka_unit_test(test_switched_off),
        cmocka_unit_test(test_a_spin_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
