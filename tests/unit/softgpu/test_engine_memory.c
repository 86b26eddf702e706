/* SPDX-License-Identifier: Apache-2.0 */
/* What the workers do when a block cannot be had. The linker puts our mmap in the place of libc's,
 * for the memory of blocks comes from there. Files are large, so it is called mmap64. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "machine.h"

static bool no_memory; /* atomic */

void *__real_mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset);

void *__wrap_mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (!__atomic_load_n(&no_memory, __ATOMIC_SEQ_CST))
        return __real_mmap64(address, size, protection, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

static const char text[] = ".version 9.0\n.target sm_90\n.address_size 64\n"
                           ".visible .entry nothing()\n{\nret;\n}\n"
                           ".visible .entry endless()\n{\nagain:\nbra again;\n}\n";

/* Two launches, the second of which is made when the first has ended, as streams do it. */
struct pair {
    struct sg_engine *engine;
    struct sg_launch launch;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned ends;
    CUresult results[2];
};

static void note_end(void *user, CUresult result, const char *message)
{
    struct pair *pair = user;
    pthread_mutex_lock(&pair->lock);
    unsigned which = pair->ends++;
    pair->results[which] = result;
    pthread_cond_signal(&pair->changed);
    pthread_mutex_unlock(&pair->lock);
    __atomic_store_n(&no_memory, false, __ATOMIC_SEQ_CST);
    if (which == 0)
        assert_int_equal(sg_engine_submit(pair->engine, &pair->launch), CUDA_SUCCESS);
}

static void pair_wait(struct pair *pair)
{
    pthread_mutex_lock(&pair->lock);
    while (pair->ends < 2)
        pthread_cond_wait(&pair->changed, &pair->lock);
    pthread_mutex_unlock(&pair->lock);
}

/* No other thread wakes the worker for the second. */
static void test_the_launch_after_one_without_memory(void **state)
{
    struct machine *machine = machine_create_from(text);
    struct pair pair = {
        .engine = sg_engine_create(&(struct sg_engine_config){.sm_count = 1, .host_threads = 1}),
        .launch = {.instance = machine->instance,
                   .kernel = (unsigned)sg_module_find_kernel(machine->module, "nothing"),
                   .grid = {1, 1, 1},
                   .block = {32, 1, 1},
                   .space = machine->space,
                   .done = note_end},
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
    };
    pair.launch.user = &pair;
    __atomic_store_n(&no_memory, true, __ATOMIC_SEQ_CST);
    assert_int_equal(sg_engine_submit(pair.engine, &pair.launch), CUDA_SUCCESS);
    pair_wait(&pair);
    assert_int_equal(pair.results[0], CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(pair.results[1], CUDA_SUCCESS);
    sg_engine_destroy(pair.engine);
    machine_destroy(machine);
}

/* A grid that runs, or the one behind it, of which no block has been admitted. */
struct endless {
    struct sg_launch launch;
    CUresult result;
    bool ended; /* atomic: result is valid. Partner: endless_wait() */
};

static void endless_done(void *user, CUresult result, const char *message)
{
    struct endless *endless = user;
    endless->result = result;
    __atomic_store_n(&endless->ended, true, __ATOMIC_RELEASE);
}

static void endless_wait(const struct endless *endless)
{
    while (!__atomic_load_n(&endless->ended, __ATOMIC_ACQUIRE))
        usleep(1000);
    assert_int_equal(endless->result, CUDA_SUCCESS);
}

static void test_a_launch_that_is_aborted_ends_alone(void **state)
{
    struct machine *machine = machine_create_from(text);
    struct sg_engine *engine =
        sg_engine_create(&(struct sg_engine_config){.sm_count = 1, .host_threads = 1});
    struct endless both[2];
    for (int i = 0; i < 2; i++) {
        both[i] = (struct endless){
            .launch = {.instance = machine->instance,
                       .kernel = (unsigned)sg_module_find_kernel(machine->module, "endless"),
                       .grid = {2, 1, 1}, /* as many threads as the SM holds */
                       .block = {1024, 1, 1},
                       .space = machine->space,
                       .done = endless_done,
                       .user = &both[i]}};
        assert_int_equal(sg_engine_submit(engine, &both[i].launch), CUDA_SUCCESS);
    }
    usleep(20000);
    sg_engine_abort_launch(engine, &both[1]);
    endless_wait(&both[1]);
    assert_false(both[0].ended);
    sg_engine_abort_launch(engine, &both[0]);
    endless_wait(&both[0]);
    sg_engine_destroy(engine);
    machine_destroy(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_launch_after_one_without_memory),
        cmocka_unit_test(test_a_launch_that_is_aborted_ends_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
