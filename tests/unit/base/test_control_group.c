/* SPDX-License-Identifier: Apache-2.0 */
/* Which control groups a process is in, of version 1 and 2, and how far below a directory. */
#include "control_group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#define V2 "0::/kubepods.slice/pod1.slice/cri-7.scope\n"
#define V1                                        \
    "5:cpu,cpuacct:/jobs/7\n4:memory:/jobs/7/a\n" \
    "1:name=systemd:/system.slice/x.service\n0::/\n"

static void below(const char *groups, const char *group, int levels)
{
    int found = control_groups_levels_below(groups, group);

    if (found != levels)
        fail_msg("%s is %d levels below %s, not %d", groups, found, group, levels);
}

static void test_version_2(void **state)
{
    below(V2, "/sys/fs/cgroup/kubepods.slice/pod1.slice/cri-7.scope", 0);
    below(V2, "/sys/fs/cgroup/kubepods.slice/pod1.slice", 1);
    below(V2, "/sys/fs/cgroup/kubepods.slice", 2);
    below(V2, "/sys/fs/cgroup/kubepods.slice/pod", -1);
    below(V2, "/sys/fs/cgroup/kubepods.slice/pod1.slice/cri-7.scope/x", -1);
    below(V2, "/sys/fs/cgroup/unified/kubepods.slice", 2);
    below(V2, "/sys/fs/cgroup/memory/kubepods.slice", -1);
    below(V2, "/kubepods.slice", -1);
    below("0::/\n", "/sys/fs/cgroup/a", -1);
    below("0::/a:b/c d\n", "/sys/fs/cgroup/a:b", 1);
}

static void test_version_1(void **state)
{
    below(V1, "/sys/fs/cgroup/cpu,cpuacct/jobs/7", 0);
    below(V1, "/sys/fs/cgroup/cpu/jobs", 1);
    below(V1, "/sys/fs/cgroup/cpuacct/jobs/7", 0);
    below(V1, "/sys/fs/cgroup/cpuset/jobs", -1);
    below(V1, "/sys/fs/cgroup/memory/jobs", 2);
    below(V1, "/sys/fs/cgroup/memory", 3);
    below(V1, "/sys/fs/cgroup/mem", -1);
    below(V1, "/sys/fs/cgroup/systemd/system.slice", 1);
    below(V1, "/sys/fs/cgroup/jobs", -1);
}

/* Of several hierarchies the nearest counts. */
static void test_several(void **state)
{
    below("2:memory:/x/y/z\n0::/x\n0::/memory/x\n", "/sys/fs/cgroup/memory/x", 0);
}

static void test_outside_of_the_namespace(void **state)
{
    below("0::/../a\n", "/sys/fs/cgroup/a", -1);
    below("0::/..\n", "/sys/fs/cgroup/a", -1);
    below("0::/../..a\n4:memory:/../a\n", "/sys/fs/cgroup/memory", -1);
}

static void test_path_of_version_2(void **state)
{
    char path[64];

    assert_true(control_groups_path("4:memory:/x\n" V2, "", path, sizeof(path)));
    assert_string_equal(path, "/kubepods.slice/pod1.slice/cri-7.scope");
    assert_true(control_groups_path(V1, "", path, sizeof(path)));
    assert_string_equal(path, "");
    assert_false(control_groups_path(V2, "", path, 8));
    assert_false(control_groups_path("4:memory:/x\n", "", path, sizeof(path)));
    assert_false(control_groups_path("0::/../x\n", "", path, sizeof(path)));
}

static void test_path_of_a_controller(void **state)
{
    char path[64];

    assert_true(control_groups_path("0::/y\n4:cpu,memory:/x\n", "memory", path, sizeof(path)));
    assert_string_equal(path, "/x");
    assert_true(control_groups_path("4:memory:/\n", "memory", path, sizeof(path)));
    assert_string_equal(path, "");
    assert_false(
        control_groups_path("0::/y\n4:memory2,name=memory:/x\n", "memory", path, sizeof(path)));
    assert_false(control_groups_path("4:memory:/../x\n", "memory", path, sizeof(path)));
}

static void test_nonsense(void **state)
{
    static const char *const texts[] = {
        "",      "\n",         ":", "::",  "0::",    "0::a",
        "0::\n", "4:name=:/a", "/", "a:b", "4:,:/a", "4:,,memory:/b"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        below(texts[i], "/sys/fs/cgroup/a", -1);
}

/* ---- the file ---- */

static char proc[] = "/tmp/funnel-groups-XXXXXX";

static int setup(void **state)
{
    return mkdtemp(proc) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", proc);
    return system(command);
}

/* One path of so many bytes. */
static void write_groups(int pid, size_t length)
{
    char path[96];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%d", proc, pid);
    assert_int_equal(mkdir(path, 0700), 0);
    strcat(path, "/cgroup");
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("0::/a/", file);
    for (size_t i = 0; i < length; i++)
        fputc('x', file);
    fputs("\n", file);
    fclose(file);
}

static void test_long_paths(void **state)
{
    char *groups = NULL;

    write_groups(7, 4096);
    assert_int_equal(control_groups_read(proc, 7, &groups), 0);
    below(groups, "/sys/fs/cgroup/a", 1);
    free(groups);
    write_groups(8, 1 << 20);
    assert_int_equal(control_groups_read(proc, 8, &groups), -E2BIG);
    assert_int_equal(control_groups_read(proc, 9, &groups), -ENOENT);
}

static void test_this_process(void **state)
{
    char *groups = NULL;

    assert_int_equal(control_groups_read("/proc", getpid(), &groups), 0);
    assert_non_null(strchr(groups, '\n'));
    free(groups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_version_1),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_outside_of_the_namespace),
        cmocka_unit_test(test_path_of_version_2),
        cmocka_unit_test(test_path_of_a_controller),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test_setup_teardown(test_long_paths, setup, teardown),
        cmocka_unit_test(test_this_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
