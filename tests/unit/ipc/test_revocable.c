/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor that its owner takes back from a peer, or that the peer finds once the owner is
 * gone.
 */
#include "revocable.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

/* A file, and the peer's inbox: another descriptor of the same socket. */
static struct fixture {
    struct revocable owner;
    int inbox, file;
} fixture;

static int make_fixture(void **state)
{
    fixture.file = memfd_create("lent", MFD_CLOEXEC);
    if (revocable_init(&fixture.owner))
        return -1;
    fixture.inbox = fcntl(fixture.owner.inbox, F_DUPFD_CLOEXEC, 0);
    return 0;
}

static int end_fixture(void **state)
{
    revocable_fini(&fixture.owner);
    close(fixture.inbox);
    close(fixture.file);
    return 0;
}

static bool is_same_file(int fd)
{
    struct stat a, b;

    assert_int_equal(fstat(fd, &a), 0);
    assert_int_equal(fstat(fixture.file, &b), 0);
    return a.st_ino == b.st_ino;
}

static void test_the_peer_takes_it_after_the_owner(void **state)
{
    int fd = -1;

    assert_int_equal(revocable_fill(&fixture.owner, fixture.file), 0);
    revocable_fini(&fixture.owner);
    assert_true(revocable_is_filled(fixture.inbox));
    assert_int_equal(revocable_take(fixture.inbox, &fd), 0);
    assert_true(is_same_file(fd));
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
    assert_false(revocable_is_filled(fixture.inbox));
}

static void test_the_owner_takes_it_back(void **state)
{
    int fd = -1;

    assert_false(revocable_is_filled(fixture.inbox));
    assert_int_equal(revocable_fill(&fixture.owner, fixture.file), 0);
    assert_true(revocable_is_filled(fixture.inbox));
    revocable_revoke(&fixture.owner);
    assert_false(revocable_is_filled(fixture.inbox));
    assert_int_equal(revocable_take(fixture.inbox, &fd), -ENODATA);
    revocable_revoke(&fixture.owner);
    revocable_fini(&fixture.owner);
    assert_false(revocable_is_filled(fixture.inbox));
    assert_int_equal(revocable_take(fixture.inbox, &fd), -ENODATA);
}

/* The write end of a pipe: its reader sees whether it is still open anywhere. */
static void test_nothing_keeps_it_open(void **state)
{
    int ends[2];
    char byte;

    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(revocable_fill(&fixture.owner, ends[1]), 0);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), -1);
    assert_int_equal(errno, EAGAIN);
    revocable_revoke(&fixture.owner);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
}

static void test_a_descriptor_is_lent_again(void **state)
{
    int fd = -1;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(revocable_fill(&fixture.owner, fixture.file), 0);
        assert_true(revocable_is_filled(fixture.inbox));
        if (i < 2)
            revocable_revoke(&fixture.owner);
    }
    assert_int_equal(revocable_take(fixture.inbox, &fd), 0);
    assert_true(is_same_file(fd));
    close(fd);
}

/* Behind the first lies another file, which the peer takes when it knows of it. */
static void lend_two(void)
{
    int other = memfd_create("other", MFD_CLOEXEC);

    assert_int_equal(revocable_fill(&fixture.owner, fixture.file), 0);
    assert_int_equal(revocable_fill(&fixture.owner, other), 0);
    close(other);
}

static void test_the_peer_takes_the_last(void **state)
{
    int fd = -1;

    lend_two();
    assert_int_equal(revocable_take_last(fixture.inbox, &fd), 0);
    assert_false(is_same_file(fd));
    close(fd);
    assert_false(revocable_is_filled(fixture.inbox));
    assert_int_equal(revocable_take_last(fixture.inbox, &fd), -ENODATA);
}

static void test_the_owner_keeps_the_first(void **state)
{
    int fd = -1;

    lend_two();
    assert_int_equal(revocable_keep_first(&fixture.owner), 0);
    assert_int_equal(revocable_keep_first(&fixture.owner), 0);
    assert_int_equal(revocable_take_last(fixture.inbox, &fd), 0);
    assert_true(is_same_file(fd));
    close(fd);
    assert_int_equal(revocable_keep_first(&fixture.owner), -ENODATA);
}

static void test_none(void **state)
{
    struct revocable none = REVOCABLE_NONE;

    revocable_revoke(&none);
    revocable_fini(&none);
    assert_false(revocable_is_filled(-1));
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, make_fixture, end_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_the_peer_takes_it_after_the_owner),
        WITH_FIXTURE(test_the_owner_takes_it_back),
        WITH_FIXTURE(test_nothing_keeps_it_open),
        WITH_FIXTURE(test_a_descriptor_is_lent_again),
        WITH_FIXTURE(test_the_peer_takes_the_last),
        WITH_FIXTURE(test_the_owner_keeps_the_first),
        cmocka_unit_test(test_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
