/* SPDX-License-Identifier: Apache-2.0 */
/* Signals wait while their thread holds a lock, but for those that no handler is called for. */
#include "deferred_signals.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static volatile sig_atomic_t handled;

static void count(int number)
{
    (void)number;
    handled++;
}

static int begin(void **state)
{
    (void)state;
    handled = 0;
    signal(SIGUSR1, count);
    signal(SIGTRAP, count);
    signals_begin_to_defer();
    return 0;
}

static void a_handler_waits_for_the_last_lock(void **state)
{
    pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;

    deferring_mutex_lock(&outer);
    {
        _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&inner);

        raise(SIGUSR1);
        assert_int_equal(handled, 0);
    }
    assert_int_equal(handled, 0);
    deferring_mutex_unlock(&outer);
    assert_int_equal(handled, 1);
}

static void a_fault_does_not_wait(void **state)
{
    signals_defer();
    raise(SIGTRAP);
    assert_int_equal(handled, 1);
    signals_restore();
}

static void signals_that_the_program_blocks_stay_blocked(void **state)
{
    sigset_t blocked, now;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    signals_defer();
    raise(SIGUSR1);
    signals_admit_without_handler();
    signals_restore();
    sigprocmask(SIG_SETMASK, NULL, &now);
    assert_true(sigismember(&now, SIGUSR1));
    assert_false(sigismember(&now, SIGTERM));
    assert_int_equal(handled, 0);
    sigprocmask(SIG_UNBLOCK, &blocked, NULL);
    assert_int_equal(handled, 1);
}

static int status_of_child(void (*run)(void))
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        run();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void wait_for_space(void)
{
    signals_defer();
    raise(SIGUSR1);
    raise(SIGTERM);
    signals_admit_without_handler();
}

static void a_wait_can_be_ended(void **state)
{
    int status = status_of_child(wait_for_space);

    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void end_in_child(void)
{
    signals_after_fork_in_child();
    raise(SIGUSR1);
    if (!handled)
        _exit(1);
}

static void a_child_defers_nothing(void **state)
{
    int status;

    signals_defer();
    status = status_of_child(end_in_child);
    signals_restore();
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_handler_waits_for_the_last_lock, begin),
        cmocka_unit_test_setup(a_fault_does_not_wait, begin),
        cmocka_unit_test_setup(signals_that_the_program_blocks_stay_blocked, begin),
        cmocka_unit_test_setup(a_wait_can_be_ended, begin),
        cmocka_unit_test_setup(a_child_defers_nothing, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
