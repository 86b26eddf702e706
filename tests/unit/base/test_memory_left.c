/* SPDX-License-Identifier: Apache-2.0 */
/* Files as the kernel shows them: of the machine, and of control groups of both versions. */
#include "memory_left.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

static char root[64];

static void write_file(const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(path, 0700);
    }
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static uint64_t left(const char *groups)
{
    char proc[96], hierarchies[96];

    snprintf(proc, sizeof(proc), "%s/proc", root);
    snprintf(hierarchies, sizeof(hierarchies), "%s/cgroup", root);
    write_file("proc/7/cgroup", groups);
    return memory_left(proc, hierarchies, 7);
}

static int set_up(void **state)
{
    snprintf(root, sizeof(root), "/tmp/memory-left-XXXXXX");
    assert_non_null(mkdtemp(root));
    write_file("proc/meminfo", "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 4000 kB\n");
    return 0;
}

static int tear_down(void **state)
{
    char command[96];

    snprintf(command, sizeof(command), "rm -r %s", root);
    return system(command);
}

static void test_the_machine_alone(void **state)
{
    assert_int_equal(left("0::/\n"), 4000 << 10);
    assert_int_equal(left("3:cpu:/a\n"), 4000 << 10);
    assert_int_equal(left("0::/no/such/group\n"), 4000 << 10);
    assert_int_equal(memory_left(root, root, 7), 0);
}

static void test_version_2(void **state)
{
    write_file("cgroup/a/memory.max", "1000000\n");
    write_file("cgroup/a/memory.current", "400000\n");
    write_file("cgroup/a/b/memory.max", "max\n");
    write_file("cgroup/a/b/memory.current", "300000\n");
    assert_int_equal(left("0::/a/b\n"), 600000);
    assert_int_equal(left("0::/a\n"), 600000);
    assert_int_equal(left("0::/\n"), 4000 << 10);
    write_file("cgroup/a/memory.stat", "anon 7\nactive_file 9\ninactive_file 100000\n");
    assert_int_equal(left("0::/a/b\n"), 700000);
    write_file("cgroup/a/b/memory.max", "300000\n");
    assert_int_equal(left("0::/a/b\n"), 0);
}

/* In a container the root has the limit. */
static void test_a_namespace(void **state)
{
    write_file("cgroup/memory.max", "500000\n");
    write_file("cgroup/memory.current", "100000\n");
    assert_int_equal(left("0::/\n"), 400000);
    assert_int_equal(left("0::/../other\n"), 400000);
}

static void test_version_1(void **state)
{
    write_file("cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("cgroup/memory/a/memory.usage_in_bytes", "5\n");
    assert_int_equal(left("4:memory:/a\n0::/\n"), 4000 << 10);
    write_file("cgroup/memory/a/memory.limit_in_bytes", "200000\n");
    write_file("cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 2\n");
    assert_int_equal(left("4:memory:/a\n0::/\n"), 200000 - 3);
    assert_int_equal(left("4:cpu,memory:/a\n"), 200000 - 3);
    assert_int_equal(left("4:hugetlb:/a\n"), 4000 << 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_machine_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_version_2, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_namespace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_version_1, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
