/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers take part in a job, and never touch one that is over. */
#include "unit.h"

#include "copy_team.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ITEMS 1000u
#define JOBS 300u

struct items {
    unsigned next; /* atomic */
    unsigned done[ITEMS];
    unsigned workers; /* atomic */
};

static void work_off(void *context)
{
    struct items *items = context;
    unsigned at;

    __atomic_add_fetch(&items->workers, 1, __ATOMIC_RELAXED);
    while ((at = __atomic_fetch_add(&items->next, 1, __ATOMIC_RELAXED)) < ITEMS)
        items->done[at]++;
}

static unsigned run_job(unsigned helpers)
{
    struct items *items = calloc(1, sizeof(*items));
    unsigned workers;

    copy_team_run(helpers, work_off, items, NULL);
    for (unsigned i = 0; i < ITEMS; i++)
        assert_int_equal(items->done[i], 1);
    workers = items->workers;
    free(items); /* a helper that came late would write here */
    return workers;
}

static void *run_jobs(void *unused)
{
    for (unsigned i = 0; i < JOBS; i++)
        run_job(2);
    return NULL;
}

static void test_alone(void **state)
{
    assert_int_equal(run_job(0), 1);
}

static void test_every_item_is_done_once(void **state)
{
    run_jobs(NULL);
}

static void test_two_threads_copy_at_once(void **state)
{
    pthread_t other;

    assert_int_equal(pthread_create(&other, NULL, run_jobs, NULL), 0);
    run_jobs(NULL);
    pthread_join(other, NULL);
}

/* Returns when all three are inside. */
static void await_company(void *context)
{
    unsigned *inside = context;

    __atomic_add_fetch(inside, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(inside, __ATOMIC_SEQ_CST) < 3)
        sched_yield();
}

static void test_helpers_do_help(void **state)
{
    unsigned inside = 0;

    copy_team_run(2, await_company, &inside, NULL);
    assert_int_equal(inside, 3);
}

static void test_a_child_of_fork_starts_anew(void **state)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        unsigned inside = 0;

        copy_team_init();
        copy_team_run(2, await_company, &inside, NULL);
        _exit(inside == 3 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_switched_off(void **state)
{
    setenv("FUNNEL_OFF", "copy-threads", 1);
    copy_team_init();
    assert_int_equal(copy_team_size(), 0);
}

static int set_up(void **state)
{
    copy_team_init();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_every_item_is_done_once),
        cmocka_unit_test(test_two_threads_copy_at_once),
        cmocka_unit_test(test_helpers_do_help),
        cmocka_unit_test(test_a_child_of_fork_starts_anew),
        cmocka_unit_test(test_switched_off),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
