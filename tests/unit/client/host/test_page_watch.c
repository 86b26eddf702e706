/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that are touched are asked for, by threads and by system calls, and keep what was written.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fd.h"
#include "page_watch.h"
#include "shm.h"

#define PAGE 4096u
#define PAGES 32u
#define SIZE (PAGES * PAGE)

static int watch, memory;
static unsigned char *here, *behind;
static atomic_uint reads, writes; /* touches that were served */
static atomic_bool write_at_once;
static atomic_uint put_off; /* touches that are not served, but made once more */

static int next_fault(int served, struct page_fault *ret_fault)
{
    int error = page_watch_next_within(served, 1000000, ret_fault);

    return error == -EAGAIN ? page_watch_next(served, ret_fault) : error;
}

/* Each group of tests has a watch and a thread of its own. */
static void *serve(void *descriptor)
{
    int served = (int)(intptr_t)descriptor;
    struct page_fault fault;

    while (next_fault(served, &fault) == 0) {
        if (put_off) {
            put_off--;
            page_watch_wake(served, fault.address, PAGE);
            continue;
        }
        atomic_fetch_add(fault.writes ? &writes : &reads, 1);
        if (fault.writes && !write_at_once)
            page_watch_allow_writes(served, fault.address, PAGE);
        page_watch_show(served, fault.address, PAGE, fault.writes);
    }
    return NULL;
}

static int setup(void **state)
{
    pthread_t thread;
    void *view, *other;
    unsigned got;

    watch = page_watch_open(*state ? WATCH_ALL_WRITABLE : 0, &got);
    if (watch < 0)
        return 0; /* this process may not: the tests are skipped */
    if (shm_create("test", SIZE, &memory) || shm_map(memory, SIZE, NULL, 0, &view) ||
        shm_map(memory, SIZE, NULL, 0, &other))
        return -1;
    here = view;
    behind = other;
    if (page_watch_add(watch, (uintptr_t)here, SIZE))
        return -1;
    return pthread_create(&thread, NULL, serve, (void *)(intptr_t)watch);
}

static void begin(void)
{
    if (watch < 0)
        skip();
    page_watch_hide((uintptr_t)here, SIZE);
    atomic_store(&reads, 0);
    atomic_store(&writes, 0);
}

static void each_page_is_asked_for_once(void **state)
{
    unsigned sum = 0;

    (void)state;
    begin();
    write_at_once = true;
    memset(behind, 3, SIZE);
    for (unsigned i = 0; i < SIZE; i++)
        sum += here[i];
    assert_int_equal(sum, 3 * SIZE);
    assert_int_equal(atomic_load(&reads), PAGES);
    assert_int_equal(atomic_load(&writes), 0);
}

static void pages_shown_for_reading_are_asked_for_again(void **state)
{
    (void)state;
    begin();
    write_at_once = false;
    memset(behind, 1, SIZE);
    if (here[0] != 1 || here[PAGE] != 1)
        fail();
    here[1] = 2;
    here[2] = 3;
    here[PAGE + 1] = 4;
    assert_int_equal(atomic_load(&reads), 2);
    assert_int_equal(atomic_load(&writes), 2);
    assert_int_equal(behind[1], 2);
    assert_int_equal(behind[PAGE + 1], 4);
    page_watch_hide((uintptr_t)here, SIZE);
    behind[0] = 9;
    assert_int_equal(here[0], 9);
    assert_int_equal(here[2], 3);
}

static void system_calls_are_served(void **state)
{
    unsigned char got[3 * PAGE];
    int ends[2];

    (void)state;
    begin();
    write_at_once = true;
    memset(behind, 5, SIZE);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], here + 100, sizeof(got)), sizeof(got));
    assert_int_equal(read(ends[0], here + 10 * PAGE, sizeof(got)), sizeof(got));
    assert_int_equal(behind[10 * PAGE], 5);
    assert_int_equal(atomic_load(&reads), 4);
    assert_int_equal(atomic_load(&writes), 3);
    close(ends[0]);
    close(ends[1]);
}

static void pages_that_the_memory_lacks_are_zero(void **state)
{
    (void)state;
    begin();
    write_at_once = true;
    memset(behind, 6, SIZE);
    assert_int_equal(fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, 2 * PAGE),
                     0);
    assert_int_equal(here[0], 6);
    assert_int_equal(here[PAGE + 5], 0);
    here[2 * PAGE + 5] = 7;
    assert_int_equal(here[3 * PAGE], 6);
    assert_int_equal(behind[2 * PAGE + 5], 7);
    assert_int_equal(behind[2 * PAGE + 6], 0);
    assert_int_equal(atomic_load(&reads), 3);
    assert_int_equal(atomic_load(&writes), 1);
}

static void a_thread_that_is_woken_touches_again(void **state)
{
    (void)state;
    begin();
    write_at_once = true;
    memset(behind, 8, SIZE);
    put_off = 3;
    assert_int_equal(here[0], 8);
    assert_int_equal(put_off, 0);
    assert_int_equal(atomic_load(&reads), 1);
}

/* As before Linux 5.19: a page that was read can be written without being asked for again. */
static void without_protection_all_pages_are_writable(void **state)
{
    (void)state;
    begin();
    write_at_once = false;
    memset(behind, 1, SIZE);
    if (here[0] != 1)
        fail();
    here[1] = 2;
    here[PAGE + 1] = 4;
    assert_int_equal(atomic_load(&reads), 1);
    assert_int_equal(atomic_load(&writes), 1);
    assert_int_equal(behind[1], 2);
    page_watch_hide((uintptr_t)here, SIZE);
    behind[0] = 9;
    assert_int_equal(here[0], 9);
}

static int setup_all_writable(void **state)
{
    *state = &watch;
    return setup(state);
}

int main(void)
{
    const struct CMUnitTest all_writable[] = {
        cmocka_unit_test(each_page_is_asked_for_once),
        cmocka_unit_test(without_protection_all_pages_are_writable),
        cmocka_unit_test(system_calls_are_served),
        cmocka_unit_test(pages_that_the_memory_lacks_are_zero),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_page_is_asked_for_once),
        cmocka_unit_test(pages_shown_for_reading_are_asked_for_again),
        cmocka_unit_test(system_calls_are_served),
        cmocka_unit_test(pages_that_the_memory_lacks_are_zero),
        cmocka_unit_test(a_thread_that_is_woken_touches_again),
    };

    return cmocka_run_group_tests(tests, setup, NULL) +
           cmocka_run_group_tests(all_writable, setup_all_writable, NULL);
}
