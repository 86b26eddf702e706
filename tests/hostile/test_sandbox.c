/* SPDX-License-Identifier: Apache-2.0 */
/* What a server, and its reader of images, have given up, as the kernel shows it. */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"

/* The number behind `name` in the status of a process, to the base given. */
static unsigned long long status_of_process(pid_t pid, const char *name, int base)
{
    char path[64], line[256];
    unsigned long long value = ~0ull;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return value;
    while (fgets(line, sizeof(line), file))
        if (!strncmp(line, name, strlen(name)))
            value = strtoull(line + strlen(name), NULL, base);
    fclose(file);
    return value;
}

static unsigned long long status_of(const char *name, int base)
{
    return status_of_process(hostile.server.pid, name, base);
}

static void no_privileges_are_left(void **state)
{
    (void)state;
    assert_int_equal(status_of("NoNewPrivs:", 10), 1);
    assert_int_equal(status_of("CapEff:", 16), 0);
    assert_int_equal(status_of("CapPrm:", 16), 0);
}

static void system_calls_are_filtered(void **state)
{
    (void)state;
    assert_int_equal(status_of("Seccomp:", 10), 2);
}

/* ---- the reader ---- */

/* A child of the server; 0 = there is none. */
static pid_t find_reader(void)
{
    DIR *processes = opendir("/proc");
    pid_t reader = 0;

    assert_non_null(processes);
    for (const struct dirent *entry; !reader && (entry = readdir(processes));) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 0 && status_of_process(pid, "PPid:", 10) == (unsigned)hostile.server.pid)
            reader = pid;
    }
    closedir(processes);
    return reader;
}

/* It prepares itself while the server starts, and new privileges are the last it gives up. */
static pid_t wait_for_reader(void)
{
    pid_t reader = find_reader();

    assert_true(reader > 0);
    for (unsigned i = 0; i < 6000 && status_of_process(reader, "NoNewPrivs:", 10) != 1; i++)
        usleep(10000);
    assert_int_equal(status_of_process(reader, "NoNewPrivs:", 10), 1);
    return reader;
}

static void the_reader_has_no_privileges(void **state)
{
    pid_t reader = wait_for_reader();

    (void)state;
    assert_int_equal(status_of_process(reader, "CapEff:", 16), 0);
    assert_int_equal(status_of_process(reader, "CapPrm:", 16), 0);
}

static bool may_leave_namespaces(void)
{
    const int kinds = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWUTS;
    int status = 1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(unshare(CLONE_NEWUSER | kinds) && unshare(kinds));
    return waitpid(pid, &status, 0) == pid && status == 0;
}

/* Only root may look at the namespaces of a process that is not dumpable. */
static void the_reader_is_in_namespaces_of_its_own(void **state)
{
    static const char *const kinds[] = {"net", "ipc", "mnt", "uts"};
    pid_t reader = wait_for_reader();
    char path[64], own[64], theirs[64];

    (void)state;
    if (!may_leave_namespaces())
        skip();
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        memset(own, 0, sizeof(own));
        memset(theirs, 0, sizeof(theirs));
        snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
        assert_true(readlink(path, own, sizeof(own) - 1) > 0);
        snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)reader, kinds[i]);
        if (readlink(path, theirs, sizeof(theirs) - 1) < 0)
            skip();
        assert_string_not_equal(own, theirs);
    }
}

/* And programs still run there. */
static void kernels_run(void **state)
{
    (void)state;
    assert_true(witness_is_well(&hostile.witness));
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 77; /* the sanitizer's leak checker needs what is given up */
#endif
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(no_privileges_are_left),
        HOSTILE_CASE(system_calls_are_filtered),
        HOSTILE_CASE(the_reader_has_no_privileges),
        HOSTILE_CASE(the_reader_is_in_namespaces_of_its_own),
        HOSTILE_CASE(kernels_run),
    };

    return HOSTILE_MAIN(tests);
}
