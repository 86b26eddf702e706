/* SPDX-License-Identifier: Apache-2.0 */
/* Static partitions never overlap, and chunks of a removed one can be used again. */
#include "static_partitions.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

static struct static_partitions partitions;

static int setup(void **state)
{
    memset(&partitions, 0, sizeof(partitions));
    partitions.on = true;
    partitions.devices.device_count = 2;
    for (unsigned i = 0; i < 2; i++) {
        partitions.devices.devices[i].sm_count = 132;
        partitions.devices.devices[i].compute_major = i ? 8 : 9;
        memset(partitions.devices.devices[i].uuid, 0x10 + (int)i, 16);
    }
    return 0;
}

static void test_chunks(void **state)
{
    assert_int_equal(static_partitions_chunk_sms(&partitions.devices.devices[0], false), 8);
    assert_int_equal(static_partitions_chunks(&partitions.devices.devices[0], false), 16);
    assert_int_equal(static_partitions_chunk_sms(&partitions.devices.devices[1], false), 4);
    assert_int_equal(static_partitions_chunks(&partitions.devices.devices[1], false), 33);
    assert_int_equal(static_partitions_chunks(&partitions.devices.devices[0], true), 16);
    assert_int_equal(static_partitions_chunks(&partitions.devices.devices[1], true), 66);
}

/* An H100 of which 15 groups of eight are whole. */
static void test_chunks_are_those_in_which_clusters_run(void **state)
{
    struct server_device *device = &partitions.devices.devices[0];

    device->clustered_sms = 120;
    assert_int_equal(static_partitions_chunks(device, false), 15);
    assert_null(static_partitions_add(&partitions, device, 16));
    assert_non_null(static_partitions_add(&partitions, device, 13));
    struct static_partition *last = static_partitions_define(&partitions, "last", "0", 2, true);
    assert_int_equal(static_partitions_place(&partitions, last), 0);
    assert_int_equal(last->first, 13);
    assert_int_equal(static_partitions_sms(last), 28);
}

static void test_no_two_overlap(void **state)
{
    const struct server_device *device = &partitions.devices.devices[0];
    struct static_partition *first = static_partitions_add(&partitions, device, 6);
    char id[STATIC_PARTITION_ID], uuid[STATIC_PARTITION_UUID];

    strcpy(id, first->id);
    strcpy(uuid, first->uuid);
    assert_non_null(static_partitions_add(&partitions, device, 4));
    assert_null(static_partitions_add(&partitions, device, 7));
    assert_int_equal(static_partitions_add(&partitions, device, 6)->first, 10);
    assert_null(static_partitions_add(&partitions, device, 1));
    assert_int_equal(static_partitions_add(&partitions, &partitions.devices.devices[1], 33)->first,
                     0);
    static_partitions_remove(&partitions, static_partitions_find(&partitions, id));
    assert_null(static_partitions_find(&partitions, id));
    assert_int_equal(static_partitions_add(&partitions, device, 5)->first, 0);
    assert_null(static_partitions_add(&partitions, device, 2));
    assert_int_equal(static_partitions_used_chunks(&partitions, uuid), 15);
}

static void test_invalid_numbers(void **state)
{
    assert_null(static_partitions_add(&partitions, &partitions.devices.devices[0], 0));
    assert_null(static_partitions_add(&partitions, &partitions.devices.devices[0], 17));
    assert_null(static_partitions_add(&partitions, &partitions.devices.devices[0], ~0u));
}

static void test_names(void **state)
{
    const struct static_partition *partition =
        static_partitions_add(&partitions, &partitions.devices.devices[1], 2);
    char name[96];

    assert_ptr_equal(static_partitions_device(&partitions, "1"), &partitions.devices.devices[1]);
    assert_ptr_equal(static_partitions_device(&partitions, "GPU-11"),
                     &partitions.devices.devices[1]);
    assert_null(static_partitions_device(&partitions, "GPU-1"));
    assert_null(static_partitions_device(&partitions, "2"));
    snprintf(name, sizeof(name), "GPU-11/%s", partition->id);
    assert_ptr_equal(static_partitions_find(&partitions, name), partition);
    snprintf(name, sizeof(name), "GPU-10/%s", partition->id);
    assert_null(static_partitions_find(&partitions, name));
    assert_null(static_partitions_find(&partitions, "GPU-11/"));
    assert_null(static_partitions_find(&partitions, ""));
}

static void test_binding(void **state)
{
    struct server_limits limits = {.sm_centipercent = 2500};
    const struct static_partition *partition;

    static_partitions_add(&partitions, &partitions.devices.devices[1], 2);
    partition = static_partitions_add(&partitions, &partitions.devices.devices[1], 3);
    partitions.on = false;
    assert_true(static_partitions_bind(&partitions, &partitions.devices, NULL, &limits));
    assert_int_equal(limits.fixed_only, 0);
    partitions.on = true;
    assert_false(static_partitions_bind(&partitions, &partitions.devices, NULL, &limits));
    assert_int_equal(limits.fixed_only, 1);
    assert_int_equal(limits.fixed_count, 0);
    assert_true(static_partitions_bind(&partitions, &partitions.devices, partition, &limits));
    assert_int_equal(limits.fixed_device, 1);
    assert_int_equal(limits.fixed_first, 8);
    assert_int_equal(limits.fixed_count, 12);
    assert_int_equal(limits.sm_centipercent, 10000);
    assert_true(static_partitions_holds(partition, &partitions.devices, &limits));
    assert_false(static_partitions_holds(&partitions.partition[0], &partitions.devices, &limits));
}

static uint64_t chunks_lent_to(const struct static_partition *partition)
{
    struct server_limits limits = {.sm_centipercent = 10000, .may_borrow = 1};

    partitions.on = true;
    assert_true(static_partitions_bind(&partitions, &partitions.devices, partition, &limits));
    assert_int_equal(limits.may_borrow, limits.borrow_chunks != 0);
    return limits.borrow_chunks;
}

static void test_lending(void **state)
{
    const struct server_device *device = &partitions.devices.devices[1];
    struct static_partition *closed = static_partitions_add(&partitions, device, 1);
    struct static_partition *own = static_partitions_add(&partitions, device, 2);
    struct static_partition *large = static_partitions_add(&partitions, device, 3);
    struct server_limits limits = {.sm_centipercent = 10000};

    static_partitions_add(&partitions, &partitions.devices.devices[0], 2)->is_shareable = true;
    own->most_chunks = 4;
    assert_int_equal(chunks_lent_to(own), 0);
    large->is_shareable = true;
    assert_int_equal(chunks_lent_to(own), 0x18);
    own->most_chunks = 64;
    assert_int_equal(chunks_lent_to(own), 0x38);
    own->is_shareable = true;
    assert_int_equal(chunks_lent_to(own), 0x38);
    assert_int_equal(chunks_lent_to(closed), 0);
    assert_true(static_partitions_bind(&partitions, &partitions.devices, own, &limits));
    assert_true(static_partitions_lends(large, &partitions.devices, &limits));
    assert_false(static_partitions_lends(closed, &partitions.devices, &limits));
    own->most_chunks = 1;
    assert_int_equal(chunks_lent_to(own), 0);
}

static struct static_partition *define(const char *name, const char *device, unsigned chunks,
                                       bool takes_remainder)
{
    return static_partitions_define(&partitions, name, device, chunks, takes_remainder);
}

/* Partitions are defined before devices are known, and placed when a server reports them. */
static void test_begin(void **state)
{
    struct server_ready devices = partitions.devices;
    struct static_partition *small, *rest;
    char name[96];

    partitions.version3 = true;
    partitions.devices.device_count = 0;
    small = define("small", "0", 2, false);
    rest = define("rest", "GPU-10", 13, true);
    define("much", "0", 2, false);
    define("nowhere", "7", 1, false);
    snprintf(name, sizeof(name), "0/%s", small->id);
    assert_ptr_equal(static_partitions_find(&partitions, name), small);
    assert_string_equal(small->uuid, "");
    assert_int_equal(static_partitions_begin(&partitions, &devices), 2);
    assert_ptr_equal(static_partitions_find(&partitions, name), small);
    snprintf(name, sizeof(name), "GPU-1010/%s", small->id);
    assert_ptr_equal(static_partitions_find(&partitions, name), small);
    assert_int_equal(small->first, 0);
    assert_int_equal(rest->first, 3);
    assert_int_equal(static_partitions_sms(rest), 13 * 8 + 4);
    assert_ptr_equal(static_partitions_named(&partitions, "rest", "0"), rest);
    assert_null(static_partitions_named(&partitions, "rest", "1"));
    static_partitions_remove(&partitions, small);
    assert_int_equal(static_partitions_begin(&partitions, &devices), 1);
    assert_string_equal(partitions.partition[1].name, "much");
    assert_int_equal(partitions.partition[1].first, 0);
}

static void test_too_many(void **state)
{
    for (unsigned i = 0; i < STATIC_PARTITIONS_MAX; i++)
        assert_non_null(define("x", "0", 1, false));
    assert_null(define("x", "0", 1, false));
    assert_null(static_partitions_add(&partitions, &partitions.devices.devices[0], 1));
}

/* An id that began with - could not be given to sm_partition rm. */
static void test_ids(void **state)
{
    for (int i = 0; i < 4096; i++) {
        struct static_partition *partition = define("x", "0", 1, false);

        assert_int_not_equal(partition->id[0], '-');
        static_partitions_remove(&partitions, partition);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_chunks, setup),
        cmocka_unit_test_setup(test_chunks_are_those_in_which_clusters_run, setup),
        cmocka_unit_test_setup(test_no_two_overlap, setup),
        cmocka_unit_test_setup(test_invalid_numbers, setup),
        cmocka_unit_test_setup(test_names, setup),
        cmocka_unit_test_setup(test_binding, setup),
        cmocka_unit_test_setup(test_lending, setup),
        cmocka_unit_test_setup(test_begin, setup),
        cmocka_unit_test_setup(test_too_many, setup),
        cmocka_unit_test_setup(test_ids, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
