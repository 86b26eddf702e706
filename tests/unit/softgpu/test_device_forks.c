/* SPDX-License-Identifier: Apache-2.0 */
/* A child of a process that uses the device: each call answers that there is none, whatever lock
 * another thread of the parent had. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_prototypes.h"
#include "fake_core.h"
#include "soft_entry.h"

static CUcontext context;
static int taken[2], enough[2]; /* pipes */

/* Has the driver's lock until it is told that this is enough. */
static void *keep_the_lock(void *unused)
{
    char byte = 0;
    SOFT_LOCKED;

    if (write(taken[1], &byte, 1) == 1 && read(enough[0], &byte, 1) != 1)
        return unused;
    return NULL;
}

static pthread_t take_the_lock(void)
{
    pthread_t thread;
    char byte;

    assert_int_equal(pthread_create(&thread, NULL, keep_the_lock, NULL), 0);
    assert_int_equal(read(taken[0], &byte, 1), 1);
    return thread;
}

static void let_go(pthread_t thread)
{
    assert_int_equal(write(enough[1], "", 1), 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static int status_of(CUresult (*call)(void))
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        alarm(10);
        _exit((int)call());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static CUresult call_init(void)
{
    return cuInit(0);
}

static CUresult call_allocate(void)
{
    CUdeviceptr memory;

    return cuMemAlloc_v2(&memory, 16);
}

static CUresult call_version(void)
{
    int version;

    return cuDriverGetVersion(&version);
}

/* What the runtime library does first in each of its calls. */
static CUresult call_storage(void)
{
    static const CUuuid id = {"\xc6\x93\x33\x6e\x11\x21\xdf\x11\xa8\xc3\x68\xf3\x55\xd8\x95\x93"};
    CUresult (*const *table)(void **ret_value, CUcontext context, void *key);
    void *value;

    if (cuGetExportTable((const void **)&table, &id))
        return CUDA_ERROR_UNKNOWN;
    return table[2](&value, NULL, &value);
}

static void before_init(void **state)
{
    pthread_t thread = take_the_lock();

    assert_int_equal(status_of(call_allocate), CUDA_ERROR_NOT_INITIALIZED);
    let_go(thread);
    assert_int_equal(status_of(call_init), CUDA_SUCCESS);
}

static void after_init(void **state)
{
    fake_use(&context);
    pthread_t thread = take_the_lock();

    assert_int_equal(status_of(call_init), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(status_of(call_allocate), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(status_of(call_storage), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(status_of(call_version), CUDA_SUCCESS);
    let_go(thread);
    assert_int_equal(call_allocate(), CUDA_SUCCESS);
}

static void *initialize(void *unused)
{
    cuInit(0);
    return unused;
}

static bool is_initializing(void)
{
    if (soft_ready())
        return true;
    if (pthread_mutex_trylock(&soft_lock))
        return true;
    pthread_mutex_unlock(&soft_lock);
    return false;
}

/* Another thread is inside of cuInit, which takes its time. */
static void during_init(void **state)
{
    pthread_t thread;

    setenv("FUNNEL_SOFT_START_MS", "500", 1);
    assert_int_equal(pthread_create(&thread, NULL, initialize, NULL), 0);
    while (!is_initializing())
        sched_yield();
    assert_int_equal(status_of(call_init), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_init),
        cmocka_unit_test(during_init),
        cmocka_unit_test(after_init),
    };

    if (pipe(taken) || pipe(enough))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
