/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader of images leaves behind, in a process of its own. */
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process_namespaces.h"
#include "unit.h"

enum outcome { LEFT, MAY_NOT_LEAVE, STAYED, KEPT_CAPABILITIES };

static const char *const kinds[] = {"net", "ipc", "mnt", "uts"};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

static void look_at(char (*to)[64])
{
    char path[64];

    memset(to, 0, KINDS * sizeof(*to));
    for (unsigned i = 0; i < KINDS; i++) {
        snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
        if (readlink(path, to[i], sizeof(*to) - 1) < 0)
            snprintf(to[i], sizeof(*to), "none");
    }
}

static bool has_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {{.effective = 1}};

    syscall(SYS_capget, &header, sets);
    return sets[0].effective || sets[0].permitted || sets[0].inheritable || sets[1].effective ||
           sets[1].permitted || sets[1].inheritable;
}

static enum outcome leave(void)
{
    char before[KINDS][64], after[KINDS][64];

    look_at(before);
    int error = process_namespaces_leave();
    look_at(after);
    if (has_capabilities())
        return KEPT_CAPABILITIES;
    for (unsigned i = 0; i < KINDS && !error; i++)
        if (!strcmp(before[i], after[i]))
            return STAYED;
    return error ? MAY_NOT_LEAVE : LEFT;
}

static void test_all_is_left_behind(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(leave());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == MAY_NOT_LEAVE) {
        fprintf(stderr, "this machine does not let a process leave its namespaces\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), LEFT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_is_left_behind)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
