/* SPDX-License-Identifier: Apache-2.0 */
/* Reserved addresses: taken once, inaccessible, and not inherited. */
#include "page_reserve.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define SIZE (64u << 10)

static uint64_t free_address(void)
{
    void *place = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(place, MAP_FAILED);
    munmap(place, SIZE);
    return (uintptr_t)place;
}

/* Whether something is mapped: msync() fails with ENOMEM where nothing is. */
static bool is_mapped(uint64_t address)
{
    return msync((void *)(uintptr_t)address, 4096, MS_ASYNC) == 0 || errno != ENOMEM;
}

static void test_takes_what_is_free_and_only_once(void **state)
{
    uint64_t address = free_address();

    assert_true(page_reserve(address, SIZE));
    assert_true(is_mapped(address));
    assert_false(page_reserve(address, SIZE));
    assert_false(page_reserve(address + SIZE / 2, SIZE));
    munmap((void *)(uintptr_t)address, SIZE);
    assert_true(page_reserve(address, SIZE));
    munmap((void *)(uintptr_t)address, SIZE);
}

static void test_leaves_other_memory_alone(void **state)
{
    char *other = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    other[0] = 7;
    assert_false(page_reserve((uintptr_t)other, SIZE));
    assert_int_equal(other[0], 7);
    munmap(other, SIZE);
}

static void test_child_of_fork_has_none(void **state)
{
    uint64_t address = free_address();
    int status;
    pid_t child;

    assert_true(page_reserve(address, SIZE));
    child = fork();
    if (child == 0)
        _exit(is_mapped(address));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    munmap((void *)(uintptr_t)address, SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takes_what_is_free_and_only_once),
        cmocka_unit_test(test_leaves_other_memory_alone),
        cmocka_unit_test(test_child_of_fork_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
