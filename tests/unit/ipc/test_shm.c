/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory: what is sealed, and which descriptors of a peer are refused. */
#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#define SIZE 8192u

static void test_created_memory_is_sealed_and_zero(void **state)
{
    int fd;
    void *address;
    assert_int_equal(shm_create("test", SIZE, &fd), 0);
    assert_int_equal(shm_check(fd, SIZE), 0);
    assert_int_not_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(ftruncate(fd, 2 * SIZE), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_int_equal(shm_map(fd, SIZE, NULL, 0, &address), 0);
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(((char *)address)[i], 0);
    shm_unmap(address, SIZE);
    shm_unmap(NULL, SIZE);
    close(fd);
}

static void test_two_maps_share(void **state)
{
    int fd;
    void *one, *other;
    assert_int_equal(shm_create("test", SIZE, &fd), 0);
    assert_int_equal(shm_map(fd, SIZE, NULL, 0, &one), 0);
    assert_int_equal(shm_map(fd, SIZE, NULL, SHM_READ_ONLY, &other), 0);
    strcpy(one, "hello");
    assert_string_equal(other, "hello");
    shm_unmap(one, SIZE);
    shm_unmap(other, SIZE);
    close(fd);
}

static void test_read_only_copy(void **state)
{
    int fd;
    void *address;
    assert_int_equal(shm_create_read_only("test", "text", 5, &fd), 0);
    assert_int_equal(shm_check(fd, 5), 0);
    assert_int_equal(shm_map(fd, 5, NULL, SHM_READ_ONLY, &address), 0);
    assert_string_equal(address, "text");
    shm_unmap(address, 5);
    assert_int_equal(shm_map(fd, 5, NULL, 0, &address), -EPERM);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    close(fd);
}

static void test_pages_are_created(void **state)
{
    struct stat status;
    int fd;

    assert_int_equal(shm_create("test", SIZE, &fd), 0);
    assert_false(shm_is_populated(fd, SIZE));
    assert_int_equal(shm_populate(fd, SIZE), 0);
    assert_int_equal(fstat(fd, &status), 0);
    assert_true(status.st_blocks * 512 >= SIZE);
    assert_true(shm_is_populated(fd, SIZE));
    assert_false(shm_is_populated(fd, SIZE + 4096));
    close(fd);
    assert_false(shm_is_populated(fd, SIZE));
    assert_true(shm_populate(fd, SIZE) < 0);
}

static void test_fixed_address(void **state)
{
    int fd;
    void *place = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *address = NULL;
    assert_int_equal(shm_create("test", SIZE, &fd), 0);
    assert_int_equal(shm_map(fd, SIZE, place, 0, &address), -EEXIST);
    assert_null(address);
    assert_int_equal(shm_map(fd, SIZE, place, SHM_REPLACE, &address), 0);
    assert_ptr_equal(address, place);
    shm_unmap(address, SIZE);
    assert_int_equal(shm_map(fd, SIZE, place, 0, &address), 0);
    assert_ptr_equal(address, place);
    shm_unmap(address, SIZE);
    close(fd);
}

static void test_check_refuses_unsealed_memory(void **state)
{
    int fd = memfd_create("test", MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, SIZE), 0);
    assert_int_equal(shm_check(fd, SIZE), -EPERM);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
    assert_int_equal(shm_check(fd, SIZE), -EPERM);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_int_equal(shm_check(fd, SIZE), 0);
    close(fd);
}

static void test_check_refuses_small_memory(void **state)
{
    int fd;
    assert_int_equal(shm_create("test", SIZE, &fd), 0);
    assert_int_equal(shm_check(fd, SIZE + 1), -EMSGSIZE);
    assert_int_equal(shm_check(fd, SIZE_MAX), -EMSGSIZE);
    close(fd);
}

static void test_check_refuses_other_files(void **state)
{
    char path[] = "/tmp/funnel-test-XXXXXX";
    int ends[2], file = mkstemp(path), null = open("/dev/null", O_RDWR);
    unlink(path);
    assert_int_equal(ftruncate(file, SIZE), 0);
    assert_int_equal(pipe(ends), 0);
    assert_true(shm_check(file, SIZE) < 0); /* on tmpfs it is a memory file without seals */
    assert_int_equal(shm_check(null, 1), -EINVAL);
    assert_int_equal(shm_check(ends[0], 1), -EINVAL);
    assert_int_equal(shm_check(-1, 1), -EINVAL);
    close(file);
    close(null);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_created_memory_is_sealed_and_zero),
        cmocka_unit_test(test_two_maps_share),
        cmocka_unit_test(test_read_only_copy),
        cmocka_unit_test(test_pages_are_created),
        cmocka_unit_test(test_fixed_address),
        cmocka_unit_test(test_check_refuses_unsealed_memory),
        cmocka_unit_test(test_check_refuses_small_memory),
        cmocka_unit_test(test_check_refuses_other_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
