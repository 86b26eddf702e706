/* SPDX-License-Identifier: Apache-2.0 */
/* Which program is at the other end of a connection: its file counts, and not its name. */
#include "peer_program.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd.h"
#include "sock.h"
#include "unit.h"

#define SCRIPT_PLACE 64 /* bytes of a command line */

static char folder[PATH_MAX], socket_path[PATH_MAX];
static int listener;

static int setup(void **state)
{
    strcpy(folder, "/tmp/funnel-program-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(socket_path, sizeof(socket_path), "%s/socket", folder);
    return sock_listen(socket_path, 0600, &listener);
}

static int teardown(void **state)
{
    char command[PATH_MAX + 16];

    fd_close(&listener);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

/* A copy of this program, which connects and waits. */
static void make_program(const char *name)
{
    char command[3 * PATH_MAX], self[PATH_MAX] = "";

    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    snprintf(command, sizeof(command), "cp %s %s/%s", self, folder, name);
    assert_int_equal(system(command), 0);
}

struct peer {
    pid_t pid;
    int fd;
};

static struct peer begin(const char *name, const char *working_directory)
{
    struct peer peer = {.pid = fork(), .fd = -1};
    char path[2 * PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (peer.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!chdir(working_directory))
            execl(path, name, "connect", socket_path, (char *)NULL);
        _exit(1);
    }
    while (sock_accept(listener, &peer.fd) == -EAGAIN)
        usleep(1000);
    assert_true(peer.fd >= 0);
    return peer;
}

static void end(struct peer *peer)
{
    kill(peer->pid, SIGKILL);
    waitpid(peer->pid, NULL, 0);
    fd_close(&peer->fd);
}

/* `arguments` are separated by NULs and ended by two. */
static struct client_program look(const struct peer *peer, const char *arguments)
{
    struct server_identity identity = {.pid = peer->pid, .uid = getuid()};
    struct hello hello = {.command = ""};
    struct client_program program;

    memcpy(hello.command, arguments, SCRIPT_PLACE);
    peer_program_look(peer->fd, &hello, &identity, &program);
    assert_int_equal(program.uid, getuid());
    assert_int_equal(program.container, identity.pid_namespace);
    return program;
}

static struct client_program look_once(const char *name, const char *working_directory,
                                       const char *arguments)
{
    struct peer peer = begin(name, working_directory);
    struct client_program program = look(&peer, arguments);

    end(&peer);
    return program;
}

#define ARGUMENTS(text)        \
    (const char[SCRIPT_PLACE]) \
    {                          \
        text                   \
    }

static void test_a_program_that_is_renamed(void **state)
{
    char from[2 * PATH_MAX], to[2 * PATH_MAX];

    make_program("main");
    struct client_program before = look_once("main", "/", ARGUMENTS("./main\0001000"));
    snprintf(from, sizeof(from), "%s/main", folder);
    snprintf(to, sizeof(to), "%s/other", folder);
    assert_int_equal(rename(from, to), 0);
    struct client_program after = look_once("other", folder, ARGUMENTS("./other\0001"));
    assert_true(before.executable.inode && before.container);
    assert_string_equal(after.script, "");
    assert_true(client_program_is_same(&before, &after));
}

static void test_programs_with_one_command_line(void **state)
{
    make_program("main");
    struct client_program one = look_once("main", folder, ARGUMENTS("./main\0001000"));
    make_program("second");
    struct client_program other = look_once("second", folder, ARGUMENTS("./main\0001000"));
    assert_false(client_program_is_same(&one, &other));
}

static void test_scripts_of_an_interpreter(void **state)
{
    make_program("python3.99");
    struct peer peer = begin("python3.99", folder);
    struct client_program train = look(&peer, ARGUMENTS("python3\0-u\0train.py\0--lr\0003"));
    struct client_program again = look(&peer, ARGUMENTS("/usr/bin/python3\0train.py\0--lr\0004"));
    struct client_program other = look(&peer, ARGUMENTS("python3\0test.py"));
    struct client_program none = look(&peer, ARGUMENTS("python3\0-i"));

    end(&peer);
    assert_string_equal(train.script, "train.py");
    assert_string_equal(none.script, "");
    assert_true(client_program_is_same(&train, &again));
    assert_false(client_program_is_same(&train, &other));
    assert_false(client_program_is_same(&train, &none));
    struct client_program elsewhere = look_once("python3.99", "/", ARGUMENTS("python3\0train.py"));
    assert_false(client_program_is_same(&train, &elsewhere));
}

static void test_scripts_with_a_whole_path(void **state)
{
    make_program("python3");
    struct client_program here = look_once("python3", folder, ARGUMENTS("python3\0/opt/train.py"));
    struct client_program there = look_once("python3", "/", ARGUMENTS("python3\0/opt/train.py"));

    assert_true(client_program_is_same(&here, &there));
}

/* Arguments without an end, and names that begin like an interpreter's. */
static void test_files_of_no_script(void **state)
{
    static const char endless[SCRIPT_PLACE] = {[0 ... SCRIPT_PLACE - 1] = 'x'};

    make_program("pythonic");
    assert_string_equal(look_once("pythonic", "/", ARGUMENTS("pythonic\0a")).script, "");
    make_program("python");
    assert_string_equal(look_once("python", "/", endless).script, "");
}

/* Its number may be another's by the time it is looked at. */
static void test_a_process_that_has_ended(void **state)
{
    make_program("main");
    struct peer peer = begin("main", "/");

    kill(peer.pid, SIGKILL);
    waitpid(peer.pid, NULL, 0);
    peer.pid = getpid(); /* as if it had been given to another */
    struct client_program program = look(&peer, ARGUMENTS("./main"));
    assert_int_equal(program.executable.inode, 0);
    assert_int_equal(program.container, 0);
    assert_string_equal(program.path, "");
    fd_close(&peer.fd);
}

/* Of one in a PID namespace that cannot be seen. */
static void test_a_process_without_a_number(void **state)
{
    make_program("main");
    struct peer peer = begin("main", "/"), unseen = {.pid = 0, .fd = peer.fd};
    struct client_program program = look(&unseen, ARGUMENTS("./main"));

    end(&peer);
    assert_int_equal(program.executable.inode, 0);
    assert_int_equal(program.container, 0);
}

static int connect_and_wait(const char *path)
{
    int fd;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (sock_connect(path, &fd))
        return 1;
    pause();
    return 0;
}

int main(int count, char **arguments)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_a_program_that_is_renamed),  IN_FOLDER(test_programs_with_one_command_line),
        IN_FOLDER(test_scripts_of_an_interpreter),  IN_FOLDER(test_scripts_with_a_whole_path),
        IN_FOLDER(test_files_of_no_script),         IN_FOLDER(test_a_process_that_has_ended),
        IN_FOLDER(test_a_process_without_a_number),
    };

    if (count == 3)
        return connect_and_wait(arguments[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
