/* SPDX-License-Identifier: Apache-2.0 */
/* Futexes, also between processes. */
#include "futex.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "unit.h"

static void test_wait_returns_at_once_when_the_word_differs(void **state)
{
    uint32_t word = 1;
    assert_int_equal(futex_wait(&word, 2, 0), -EAGAIN);
}

static void test_wait_times_out(void **state)
{
    uint32_t word = 1;
    assert_int_equal(futex_wait(&word, 1, NS_PER_MS), -ETIMEDOUT);
}

static void test_wake_without_sleepers(void **state)
{
    uint32_t word = 1;
    assert_int_equal(futex_wake(&word, 1), 0);
}

/* The child sleeps until the word is 1; the parent wakes until it has hit a sleeper. */
static void test_wake_reaches_another_process(void **state)
{
    uint32_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0)
            futex_wait(word, 0, 0);
        _exit(0);
    }
    while (futex_wake(word, 1) == 0)
        sched_yield();
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    futex_wake(word, 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    munmap(word, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait_returns_at_once_when_the_word_differs),
        cmocka_unit_test(test_wait_times_out),
        cmocka_unit_test(test_wake_without_sleepers),
        cmocka_unit_test(test_wake_reaches_another_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
