/* SPDX-License-Identifier: Apache-2.0 */
/* A program talks to daemons of root and of its own user, and to no one else who listens. */
#include "daemon_trust.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd.h"
#include "sock.h"
#include "unit.h"

#define SQUATTER 65534

static char folder[64], path[96];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/funnel-trust-XXXXXX");
    if (!mkdtemp(folder) || chmod(folder, 0777))
        return -1;
    snprintf(path, sizeof(path), "%s/socket", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

/* Listens as another user until it is killed. */
static pid_t squat(void)
{
    int ready[2], fd;
    char byte;

    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(setuid(SQUATTER) || sock_listen(path, 0666, &fd) || write(ready[1], "x", 1) != 1 ||
              pause());
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void a_daemon_of_the_own_user(void **state)
{
    _cleanup_fd_ int listener = -1;
    _cleanup_fd_ int fd = -1;

    (void)state;
    assert_int_equal(sock_listen(path, 0600, &listener), 0);
    assert_int_equal(daemon_connect_trusted(path, &fd), 0);
    assert_true(fd >= 0);
}

static void another_user_who_listened_first(void **state)
{
    _cleanup_fd_ int fd = -1;

    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can be another user */
    pid_t pid = squat();
    assert_int_equal(daemon_connect_trusted(path, &fd), -EPERM);
    setenv("FUNNEL_DAEMON_UID", "65533", 1);
    assert_int_equal(daemon_connect_trusted(path, &fd), -EPERM);
    assert_int_equal(fd, -1);
    setenv("FUNNEL_DAEMON_UID", "65534", 1);
    assert_int_equal(daemon_connect_trusted(path, &fd), 0);
    assert_true(fd >= 0);
    unsetenv("FUNNEL_DAEMON_UID");
    kill(pid, 9);
    waitpid(pid, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_daemon_of_the_own_user, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(another_user_who_listened_first, make_folder,
                                        remove_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
