/* SPDX-License-Identifier: Apache-2.0 */
/* Memory limits of control groups, from files as the kernel has them. */
#include "group_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#define GIB (1ull << 30)

static char root[64];
static struct server_ready ready = {
    .device_count = 2,
    .devices = {{.pci_bus_id = "0000:03:00.0", .uuid = {0x30, 0x26, 0x53, 0xec}},
                {.pci_bus_id = "0000:C1:00.0", .uuid = {0x11, 0x22}}}};

static int setup(void **state)
{
    strcpy(root, "/tmp/funnel-dmem-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[96];

    snprintf(command, sizeof(command), "rm -r %s", root);
    return system(command);
}

static void write_file(const char *name, const char *text)
{
    char path[160];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void make_folder(const char *name)
{
    char path[160];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static struct server_limits tighten(const char *groups, uint64_t first, uint64_t second)
{
    struct server_limits limits = {.memory_limit = {first, second}};

    group_memory_tighten(root, groups, 7, &ready, &limits);
    return limits;
}

static void expect(struct server_limits limits, uint64_t first, uint64_t second)
{
    assert_int_equal(limits.memory_limit[0], first);
    assert_int_equal(limits.memory_limit[1], second);
}

static void test_regions_of_devices(void **state)
{
    make_folder("a");
    write_file("a/dmem.max", "drm/0000:03:00.0/vram0 1073741824\ndrm/0000:c1:00.0/vram0 max\n"
                             "drm/0000:99:00.0/vram0 5\n");
    expect(tighten("0::/a\n", 0, 0), GIB, 0);
    expect(tighten("0::/a\n", GIB / 2, 7), GIB / 2, 7);
    expect(tighten("0::/a\n", 2 * GIB, 7), GIB, 7);
    write_file("a/dmem.max", "nvidia/GPU-11220000-0000-0000-0000-000000000000 4096\n");
    expect(tighten("0::/a\n", 0, 0), 0, 4096);
}

/* 0 would be no limit. */
static void test_nothing_allowed(void **state)
{
    make_folder("a");
    write_file("a/dmem.max", "drm/0000:03:00.0/vram0 0\n");
    expect(tighten("0::/a\n", 0, 0), 1, 0);
}

static void test_groups_above(void **state)
{
    make_folder("a");
    make_folder("a/b");
    write_file("a/dmem.max", "drm/0000:03:00.0/vram0 1073741824\n");
    write_file("a/b/dmem.max", "drm/0000:03:00.0/vram0 max\ndrm/0000:c1:00.0/vram0 9\n");
    expect(tighten("4:memory:/x\n0::/a/b\n", 0, 0), GIB, 9);
    expect(tighten("0::/a/b/c\n", 0, 0), GIB, 9);
    expect(tighten("0::/a\n", 0, 0), GIB, 0);
}

/* Also where an operator's own limit for each program is tighter. */
static void test_programs_have_it_together(void **state)
{
    const struct joint_limit *first, *second, *other;
    struct server_limits a, b, c;

    make_folder("a");
    make_folder("a/b");
    make_folder("a/c");
    write_file("a/dmem.max", "drm/0000:03:00.0/vram0 1073741824\n");
    write_file("a/c/dmem.max", "drm/0000:03:00.0/vram0 4096\n");
    a = tighten("0::/a\n", 5, 0);
    b = tighten("0::/a/b\n", 0, 0);
    c = tighten("0::/a/c\n", 0, 0);
    first = &a.joint[JOINT_CONTROL_GROUP];
    second = &b.joint[JOINT_CONTROL_GROUP];
    other = &c.joint[JOINT_CONTROL_GROUP];
    assert_int_equal(first->memory[0], GIB);
    assert_int_equal(second->memory[0], GIB);
    assert_int_equal(other->memory[0], 4096);
    assert_true(first->key && first->key == second->key);
    assert_false(other->key == first->key);
    a = tighten("0::/nowhere\n", 0, 0);
    assert_false(a.joint[JOINT_CONTROL_GROUP].key);
}

static void test_soft_limits(void **state)
{
    struct server_limits limits;

    make_folder("a");
    make_folder("a/b");
    write_file("a/dmem.min", "drm/0000:03:00.0/vram0 1073741824\ndrm/0000:c1:00.0/vram0 9\n");
    write_file("a/b/dmem.min", "drm/0000:03:00.0/vram0 4096\ndrm/0000:c1:00.0/vram0 0\n");
    limits = tighten("0::/a/b\n", 0, 5);
    expect(limits, 0, 5);
    assert_int_equal(limits.memory_soft[0], 4096);
    assert_int_equal(limits.memory_soft[1], 9);
}

static void test_beside_version_1(void **state)
{
    make_folder("unified");
    make_folder("unified/a");
    assert_false(group_memory_is_there(root));
    write_file("unified/dmem.capacity", "");
    assert_true(group_memory_is_there(root));
    write_file("unified/a/dmem.max", "drm/0000:03:00.0/vram0 5\n");
    expect(tighten("4:memory:/a\n0::/a\n", 0, 0), 5, 0);
}

static void test_no_limits(void **state)
{
    make_folder("a");
    write_file("a/dmem.max", "\n \nx\ndrm/0000:03:00.0/vram0 \ndrm/0000:03:00.0/vram0 -1\n");
    expect(tighten("0::/a\n", 0, 0), 0, 0);
    expect(tighten("0::/nowhere\n", 0, 3), 0, 3);
    expect(tighten("0::/../a\n", 0, 3), 0, 3);
    expect(tighten("", 4, 0), 4, 0);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_regions_of_devices),
        IN_FOLDER(test_nothing_allowed),
        IN_FOLDER(test_groups_above),
        IN_FOLDER(test_beside_version_1),
        IN_FOLDER(test_no_limits),
        IN_FOLDER(test_soft_limits),
        IN_FOLDER(test_programs_have_it_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
