/* SPDX-License-Identifier: Apache-2.0 */
/* The budget follows the CPUs and the environment. It is worked out once a process, so each case is
 * a process of its own. */
#include "spin.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
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
    setenv("FUNNEL_OFF", "spin", 1);
    struct spin spin = spin_begin();
    return spin_more(&spin) ? UINT64_MAX : spin_budget_ns();
}

static uint64_t budget_with_an_empty_switch(void)
{
    setenv("FUNNEL_OFF", "", 1);
    return budget_on_one_cpu();
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

/* Where the test has many CPUs; elsewhere spins are short anyway. */
static uint64_t budget_while_shortened(void)
{
    spin_limit(2000);
    struct spin spin = spin_begin_yielding(NS_PER_SEC);
    return spin_is_cheap() || spin.yielding ? UINT64_MAX : spin.budget;
}

static uint64_t change_after_shortening(void)
{
    uint64_t before = spin_begin().budget;
    spin_limit(2000);
    spin_limit(0);
    return spin_begin().budget - before;
}

static void test_shortened_for_as_long_as_it_is_wanted(void **state)
{
    assert_true(child_finds(budget_while_shortened, 2000));
    assert_true(child_finds(change_after_shortening, 0));
}

static void test_few_cpus_spin_shortly(void **state)
{
    assert_true(child_finds(budget_on_one_cpu, 2000));
}

static void test_switched_off(void **state)
{
    assert_true(child_finds(budget_with_no_spin, 0));
    assert_true(child_finds(budget_with_an_empty_switch, 2000));
}

static void test_a_spin_ends(void **state)
{
    struct spin spin = {.budget = 1000};
    while (spin_more(&spin))
        ;
    assert_true(spin.rounds > 0);
}

static bool goes_on(struct spin *spin)
{
    for (int round = 1; round < 8; round++)
        assert_true(spin_more(spin));
    return spin_more(spin);
}

/* The last check was a minute ago, and the deadline is over, but yielding may go on for an hour. */
static void test_yielding_ends_on_an_overloaded_core(void **state)
{
    uint64_t now = clock_ns();
    struct spin spin = {.budget = 1, .yielding = 3600 * NS_PER_SEC, .deadline = now};

    assert_true(goes_on(&spin));
    spin.last_check = now - 60 * NS_PER_SEC;
    assert_false(goes_on(&spin));
}

static unsigned yields;

/* Instead of libc's. */
int sched_yield(void)
{
    yields++;
    return 0;
}

static uint32_t stay_on_this_cpu(void)
{
    cpu_set_t set;
    int cpu = sched_getcpu();

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
    return (uint32_t)cpu + 1;
}

static unsigned yields_beside(uint32_t partners_cpu, _Atomic uint32_t *mine)
{
    _Atomic uint32_t partners = partners_cpu;
    struct spin spin = {.budget = 3600 * NS_PER_SEC, .cpus = {mine, &partners}};

    yields = 0;
    for (int round = 0; round < 80; round++)
        assert_true(spin_more(&spin));
    return yields;
}

/* Only the partner can make the condition true, and it needs this very CPU. */
static void test_a_thread_on_the_same_cpu_is_let_go_first(void **state)
{
    _Atomic uint32_t mine = 0;
    uint32_t here = stay_on_this_cpu();

    assert_int_equal(yields_beside(here, &mine), 10);
    assert_int_equal(mine, here);
    assert_int_equal(yields_beside(here + 1, &mine), 0);
    assert_int_equal(yields_beside(0, &mine), 0);
}

int main(void)
{
    unsetenv("FUNNEL_OFF");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_cpus_spin_shortly),
        cmocka_unit_test(test_shortened_for_as_long_as_it_is_wanted),
        cmocka_unit_test(test_switched_off),
        cmocka_unit_test(test_a_spin_ends),
        cmocka_unit_test(test_yielding_ends_on_an_overloaded_core),
        cmocka_unit_test(test_a_thread_on_the_same_cpu_is_let_go_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
