/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions as lines: each comes back as it was, and a line that is not one changes nothing. */
#include "partition_line.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

static struct static_partitions partitions, next;

static int setup(void **state)
{
    memset(&partitions, 0, sizeof(partitions));
    partitions.version3 = true;
    partitions.devices.device_count = 1;
    partitions.devices.devices[0].sm_count = 132;
    partitions.devices.devices[0].compute_major = 9;
    memset(partitions.devices.devices[0].uuid, 0x10, 16);
    memset(&next, 0, sizeof(next));
    next.version3 = true;
    return 0;
}

static struct static_partition *cut(const char *name, unsigned chunks, bool remainder)
{
    struct static_partition *partition =
        static_partitions_define(&partitions, name, "0", chunks, remainder);

    assert_non_null(partition);
    assert_int_equal(static_partitions_place(&partitions, partition), 0);
    return partition;
}

static void restore_all(void)
{
    char line[PARTITION_LINE_MAX];

    for (unsigned i = 0; i < partitions.count; i++) {
        partition_line_write(&partitions.partition[i], line);
        assert_int_equal(partition_line_restore(&next, line), 0);
    }
    assert_int_equal(static_partitions_begin(&next, &partitions.devices), 0);
}

static void test_places_and_identifiers_stay(void **state)
{
    static_partitions_remove(&partitions, cut("hole", 3, false));
    cut("a", 2, false);
    cut("hole", 3, false);
    cut("b", 1, false)->is_shareable = true;
    cut("last", 2, true);
    static_partitions_remove(&partitions, &partitions.partition[1]);
    partitions.partition[1].most_chunks = 3;
    restore_all();
    assert_true(next.on);
    assert_int_equal(next.count, 3);
    for (unsigned i = 0; i < next.count; i++)
        assert_memory_equal(&next.partition[i], &partitions.partition[i],
                            sizeof(next.partition[i]));
}

/* The file has defined "a" again; "b" was the earlier file's only. */
static void test_partitions_of_the_file(void **state)
{
    struct static_partition *again = static_partitions_define(&next, "a", "0", 2, false);

    cut("b", 3, false)->is_of_file = true;
    cut("a", 2, false)->is_of_file = true;
    again->is_of_file = true;
    restore_all();
    assert_int_equal(next.count, 1);
    assert_string_equal(again->id, partitions.partition[1].id);
    assert_int_equal(again->first, 3);
}

/* A place that the device does not have, or that another has, is not believed. */
static void test_wrong_places(void **state)
{
    cut("a", 2, false);
    cut("b", 2, false);
    partitions.partition[0].first = 4000;
    partitions.partition[1].first = 3999;
    restore_all();
    assert_int_equal(next.partition[0].first, 0);
    assert_int_equal(next.partition[1].first, 2);
    partitions.partition[0].first = partitions.partition[1].first = 5;
    next.count = 0;
    restore_all();
    assert_int_not_equal(next.partition[0].first, next.partition[1].first);
}

static void test_a_line_of_an_earlier_release(void **state)
{
    assert_int_equal(partition_line_restore(&next, "a 0 2 0 0 abcdefghijklmno 5 -"), 0);
    assert_int_equal(next.partition[0].first, 5);
    assert_false(next.partition[0].is_shareable);
    assert_int_equal(next.partition[0].most_chunks, 0);
}

static void test_lines_that_are_none(void **state)
{
    static const char *const wrong[] = {
        "",
        "a",
        "a 0 2 0 0 abcdefghijklmno 0",
        "a 0 2 0 0 abcdefghijklmno 0 - more",
        "a 0 0 0 0 abcdefghijklmno 0 -",
        "a 0 5000 0 0 abcdefghijklmno 0 -",
        "a 0 2 2 0 abcdefghijklmno 0 -",
        "a 0 2 0 -1 abcdefghijklmno 0 -",
        "a 0 2 0 0 short 0 -",
        "a 0 2 0 0 abcdefghijklmno 5000 -",
        "a 0 2 0 0 abcdefghijklmno 0 - 2 0",
        "a 0 2 0 0 abcdefghijklmno 0 - 1 5000",
        "a 0 2 0 0 abcdefghijklmno 0 - 1 0 more",
        "a 0 2 0 0 abcdefghijklmnopqrstuvwxyz 0 -",
        "a 0 2 0 0 abcdefghijklmno 0 GPU-00000000-0000-0000-0000-000000000000-and-more",
    };
    char line[2 * PARTITION_LINE_MAX];

    for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(partition_line_restore(&next, wrong[i]), -EINVAL);
    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    assert_int_equal(partition_line_restore(&next, line), -EINVAL);
    assert_int_equal(next.count, 0);
}

static void test_too_many(void **state)
{
    char line[PARTITION_LINE_MAX];

    for (unsigned i = 0; i < STATIC_PARTITIONS_MAX; i++) {
        snprintf(line, sizeof(line), "p%u 0 1 0 0 abcdefghijklmno 0 -", i);
        assert_int_equal(partition_line_restore(&next, line), 0);
    }
    assert_int_equal(partition_line_restore(&next, line), -ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_places_and_identifiers_stay, setup),
        cmocka_unit_test_setup(test_partitions_of_the_file, setup),
        cmocka_unit_test_setup(test_wrong_places, setup),
        cmocka_unit_test_setup(test_a_line_of_an_earlier_release, setup),
        cmocka_unit_test_setup(test_lines_that_are_none, setup),
        cmocka_unit_test_setup(test_too_many, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
