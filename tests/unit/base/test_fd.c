/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors: closed when they should be, and reads and writes that are complete or an error. */
#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static int open_null(void)
{
    int fd = open("/dev/null", O_RDWR);
    assert_true(fd >= 0);
    return fd;
}

static int scope(bool keep)
{
    _cleanup_fd_ int fd = open_null();
    return keep ? fd_steal(&fd) : fd;
}

static void test_scope_closes_what_was_not_stolen(void **state)
{
    assert_false(is_open(scope(false)));
    int kept = scope(true);
    assert_true(is_open(kept));
    fd_close(&kept);
}

static void test_close_is_idempotent_and_keeps_errno(void **state)
{
    int fd = open_null();
    errno = ENOTTY;
    fd_close(&fd);
    assert_int_equal(fd, -1);
    fd_close(&fd);
    assert_int_equal(errno, ENOTTY);
}

static void test_set_cloexec(void **state)
{
    int fd = open_null();
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    assert_int_equal(fd_set_cloexec(fd), 0);
    assert_int_not_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    fd_close(&fd);
    assert_int_equal(fd_set_cloexec(fd), -EBADF);
}

#define BULK (1 << 20)

static void *write_bulk(void *argument)
{
    static unsigned char data[BULK];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(i * 7 >> 3);
    int rc = write_all(*(int *)argument, data, sizeof(data));
    return rc == 0 ? argument : NULL;
}

static void test_bulk_through_a_pipe(void **state)
{
    static unsigned char data[BULK];
    int ends[2];
    pthread_t writer;
    void *ok;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_bulk, &ends[1]), 0);
    assert_int_equal(read_all(ends[0], data, sizeof(data)), 0);
    pthread_join(writer, &ok);
    assert_non_null(ok);
    for (size_t i = 0; i < sizeof(data); i++)
        assert_int_equal(data[i], (unsigned char)(i * 7 >> 3));
    close(ends[1]);
    assert_int_equal(read_all(ends[0], data, 1), -ENODATA);
    close(ends[0]);
}

static void test_pread_all(void **state)
{
    char data[5] = "";
    int fd = memfd_create("test", 0);
    assert_int_equal(write_all(fd, "0123456789", 10), 0);
    assert_int_equal(pread_all(fd, data, 4, 3), 0);
    assert_string_equal(data, "3456");
    assert_int_equal(pread_all(fd, data, 4, 7), -ENODATA);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 10);
    close(fd);
    assert_int_equal(pread_all(fd, data, 1, 0), -EBADF);
}

static void test_open_log(void **state)
{
    char path[] = "/tmp/test-fd-XXXXXX";
    int fd = mkstemp(path);

    unsetenv("TEST_LOG");
    assert_int_equal(fd_open_log("TEST_LOG"), -1);
    setenv("TEST_LOG", "", 1);
    assert_int_equal(fd_open_log("TEST_LOG"), -1);
    setenv("TEST_LOG", "/no such folder/log", 1);
    assert_int_equal(fd_open_log("TEST_LOG"), -1);
    assert_int_equal(write(fd, "one", 3), 3);
    close(fd);
    setenv("TEST_LOG", path, 1);
    fd = fd_open_log("TEST_LOG");
    assert_int_equal(write(fd, "two", 3), 3);
    assert_int_equal(lseek(fd, 0, SEEK_END), 6);
    close(fd);
    unlink(path);
}

static void write_text(int directory, const char *name, const char *text)
{
    _cleanup_fd_ int fd = fd_create_anew(directory, name);

    assert_true(fd >= 0);
    assert_int_equal(write_all(fd, text, strlen(text)), 0);
}

static bool has_text(int directory, const char *name, const char *expected)
{
    _cleanup_fd_ int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    char text[8] = "";

    return fd >= 0 && read(fd, text, sizeof(text) - 1) == (ssize_t)strlen(expected) &&
           !strcmp(text, expected);
}

static void test_a_file_that_is_replaced(void **state)
{
    char path[] = "/tmp/test-fd-XXXXXX";
    assert_non_null(mkdtemp(path));
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    write_text(directory, "new", "1");
    assert_int_equal(fd_put_in_place(directory, "new", "file", 0), 0);
    assert_true(has_text(directory, "file", "1"));
    write_text(directory, "new", "2");
    assert_int_equal(fd_put_in_place(directory, "new", "file", -ENOSPC), -ENOSPC);
    assert_true(has_text(directory, "file", "1"));
    assert_int_equal(faccessat(directory, "new", F_OK, 0), -1);
    write_text(directory, "new", "3");
    assert_int_equal(fd_put_in_place(directory, "new", "folder/file", 0), -ENOENT);
    assert_int_equal(faccessat(directory, "new", F_OK, 0), -1);
    unlinkat(directory, "file", 0);
    close(directory);
    assert_int_equal(rmdir(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_log),
        cmocka_unit_test(test_scope_closes_what_was_not_stolen),
        cmocka_unit_test(test_close_is_idempotent_and_keeps_errno),
        cmocka_unit_test(test_set_cloexec),
        cmocka_unit_test(test_bulk_through_a_pipe),
        cmocka_unit_test(test_pread_all),
        cmocka_unit_test(test_a_file_that_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
