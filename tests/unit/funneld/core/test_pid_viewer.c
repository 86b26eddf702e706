/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of processes as seen from PID namespaces: this one's, a child's, and a sibling of that.
 */
#include "pid_viewer.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static void test_own_namespace(void **state)
{
    struct pid_viewer viewer = pid_viewer_of(getpid());

    assert_int_equal(viewer.level, 1);
    assert_int_equal(pid_seen_by(&viewer, getpid()), getpid());
    assert_int_equal(pid_seen_by(&viewer, 1), 1);
    assert_int_equal(pid_seen_by(&viewer, 0), 0);
}

static void test_outside(void **state)
{
    struct pid_viewer viewer = pid_viewer_of(0);

    assert_int_equal(viewer.level, 0);
    assert_int_equal(pid_seen_by(&viewer, getpid()), 0);
}

/* The first process of a new PID namespace: its number here, or 0 where no namespace can be made.
 * It ends when parent[1] is closed. */
static pid_t start_namespace(int parent[2])
{
    char byte;
    pid_t pid, inner;
    int told[2];

    assert_int_equal(pipe(parent), 0);
    assert_int_equal(pipe(told), 0);
    pid = fork();
    if (pid == 0) {
        close(parent[1]);
        if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
            _exit(77);
        inner = fork();
        if (inner == 0)
            _exit(read(parent[0], &byte, 1) > 0);
        if (write(told[1], &inner, sizeof(inner)) != sizeof(inner))
            _exit(1);
        waitpid(inner, NULL, 0);
        _exit(0);
    }
    close(parent[0]);
    close(told[1]);
    inner = 0;
    if (read(told[0], &inner, sizeof(inner)) != sizeof(inner))
        inner = 0;
    close(told[0]);
    return inner;
}

static void test_namespaces(void **state)
{
    int ends[2][2];
    pid_t first = start_namespace(ends[0]), second = start_namespace(ends[1]);
    struct pid_viewer viewer = pid_viewer_of(first);

    if (first && second) {
        assert_int_equal(viewer.level, 2);
        assert_int_equal(pid_seen_by(&viewer, first), 1);
        assert_int_equal(pid_seen_by(&viewer, second), 0);
        assert_int_equal(pid_seen_by(&viewer, getpid()), 0);
    }
    close(ends[0][1]);
    close(ends[1][1]);
    while (wait(NULL) > 0)
        continue;
    if (!first || !second)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_namespace),
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_namespaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
