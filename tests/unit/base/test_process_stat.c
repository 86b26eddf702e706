/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of processes: of this one, of one that has ended and was not reaped, and of
 * none. */
#include "process_stat.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static void test_own(void **state)
{
    struct process_stat stat = process_stat_read(getpid());

    assert_int_equal(stat.state, 'R');
    assert_int_not_equal(stat.started, 0);
    assert_int_equal(process_stat_read(getpid()).started, stat.started);
    assert_int_equal(process_stat_own().started, stat.started);
}

/* The kernel writes the name as it is, so it can look like the end of the name. */
static void test_name_with_brackets(void **state)
{
    uint64_t started = process_stat_read(getpid()).started;

    assert_int_equal(prctl(PR_SET_NAME, "a) S 1 (b"), 0);
    assert_int_equal(process_stat_read(getpid()).state, 'R');
    assert_int_equal(process_stat_read(getpid()).started, started);
}

static void test_ended(void **state)
{
    pid_t pid = fork();

    if (pid == 0)
        for (;;)
            pause();
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    assert_true(process >= 0);
    assert_false(process_has_ended(process));
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT), 0);
    assert_true(process_has_ended(process));
    assert_int_equal(process_stat_read(pid).state, 'Z');
    assert_false(process_is_gone(pid));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(process_has_ended(process));
    assert_int_equal(process_stat_read(pid).state, 0);
    assert_true(process_is_gone(pid));
    close(process);
}

static void test_no_process_at_all(void **state)
{
    assert_false(process_is_gone(0));
    assert_false(process_is_gone(-1));
    assert_false(process_is_gone(getpid()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_name_with_brackets),
        cmocka_unit_test(test_ended),
        cmocka_unit_test(test_no_process_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
