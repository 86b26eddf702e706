/* SPDX-License-Identifier: Apache-2.0 */
/* control.log: what other processes have chosen in it is harmless, and users cannot fill it. */
#include "journal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define ORDINARY_USER 4711

static char folder[64];

static int setup(void **state)
{
    strcpy(folder, "/tmp/funnel-journal-XXXXXX");
    return mkdtemp(folder) ? journal_open(folder, false) : -1;
}

static int teardown(void **state)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return system(command);
}

static char *read_log(void)
{
    static char text[1 << 20];
    char path[96];
    ssize_t size;
    int fd;

    snprintf(path, sizeof(path), "%s/control.log", folder);
    fd = open(path, O_RDONLY);
    size = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[size > 0 ? size : 0] = '\0';
    return text;
}

static void test_control_characters(void **state)
{
    journal("Client of %s", "\033[2Jevil\n\tname");
    assert_non_null(strstr(read_log(), "Client of ?[2Jevil??name\n"));
}

static void test_a_user_cannot_fill_the_disk(void **state)
{
    char line[512];
    struct stat status;
    char path[96];
    uid_t before = journal_account(ORDINARY_USER);

    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    for (int i = 0; i < 2000; i++)
        journal("%s", line);
    assert_int_equal(journal_account(before), ORDINARY_USER);
    snprintf(path, sizeof(path), "%s/control.log", folder);
    assert_int_equal(stat(path, &status), 0);
    assert_true(status.st_size < 400 << 10);
    assert_non_null(strstr(read_log(), "User 4711 causes too many lines"));
    journal("The daemon itself");
    assert_non_null(strstr(read_log(), "The daemon itself\n"));
}

static void check_server_log(const char *name, const char *expected)
{
    char path[128];

    assert_int_equal(journal_append_server(folder, name, geteuid(), "line\n", 5), 0);
    snprintf(path, sizeof(path), "%s/%s", folder, expected);
    assert_int_equal(access(path, F_OK), 0);
}

static void test_logs_of_servers(void **state)
{
    char own[32];

    snprintf(own, sizeof(own), "uid_%u", (unsigned)geteuid());
    check_server_log(own, "server.log");
    check_server_log("night", "night/server.log");
    check_server_log("uid_4711", "uid_4711/server.log");
}

static void test_a_link_is_not_followed(void **state)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/night", folder);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof(path), "%s/night/server.log", folder);
    assert_int_equal(symlink("/tmp/elsewhere", path), 0);
    assert_true(journal_append_server(folder, "night", geteuid(), "line\n", 5) < 0);
}

/* It has the command lines of all users' programs. */
static void test_others_cannot_read(void **state)
{
    struct stat status;
    char path[96];

    snprintf(path, sizeof(path), "%s/control.log", folder);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static bool can_read(const char *path, uid_t uid)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(setgid(uid) || setuid(uid) || access(path, R_OK) || !access(path, W_OK));
    waitpid(pid, &status, 0);
    return status == 0;
}

/* It has the command lines and the output of that user's programs. */
static void test_a_servers_log_is_its_users(void **state)
{
    char path[128];

    if (geteuid() != 0)
        skip(); /* only root can be other users */
    snprintf(path, sizeof(path), "%s/night/server.log", folder);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(journal_append_server(folder, "night", ORDINARY_USER, "line\n", 5), 0);
    assert_true(can_read(path, ORDINARY_USER));
    assert_false(can_read(path, ORDINARY_USER + 1));
    assert_int_equal(chmod(path, 0644), 0);
    assert_true(can_read(path, ORDINARY_USER + 1));
    assert_int_equal(journal_append_server(folder, "night", ORDINARY_USER, "line\n", 5), 0);
    assert_true(can_read(path, ORDINARY_USER));
    assert_false(can_read(path, ORDINARY_USER + 1));
}

int main(void)
{
#define WITH_LOG(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_LOG(test_control_characters),     WITH_LOG(test_a_user_cannot_fill_the_disk),
        WITH_LOG(test_logs_of_servers),        WITH_LOG(test_others_cannot_read),
        WITH_LOG(test_a_link_is_not_followed), WITH_LOG(test_a_servers_log_is_its_users),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
