/* SPDX-License-Identifier: Apache-2.0 */
/* Static partitions never overlap, and what was given back can be had again. */
#include "statics.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

static struct statics statics;

static int setup(void **state)
{
    memset(&statics, 0, sizeof(statics));
    statics.on = true;
    statics.devices.device_count = 2;
    for (unsigned i = 0; i < 2; i++) {
        statics.devices.devices[i].sm_count = 132;
        statics.devices.devices[i].compute_major = i ? 8 : 9;
        memset(statics.devices.devices[i].uuid, 0x10 + (int)i, 16);
    }
    return 0;
}

static void test_chunks(void **state)
{
    assert_int_equal(statics_chunk_sms(&statics.devices.devices[0], false), 8);
    assert_int_equal(statics_chunks(&statics.devices.devices[0], false), 16);
    assert_int_equal(statics_chunk_sms(&statics.devices.devices[1], false), 4);
    assert_int_equal(statics_chunks(&statics.devices.devices[1], false), 33);
    assert_int_equal(statics_chunks(&statics.devices.devices[0], true), 16);
    assert_int_equal(statics_chunks(&statics.devices.devices[1], true), 66);
}

static void test_no_two_overlap(void **state)
{
    const struct server_device *device = &statics.devices.devices[0];
    struct static_partition *first = statics_add(&statics, device, 6);
    char id[STATICS_ID], uuid[STATICS_UUID];

    strcpy(id, first->id);
    strcpy(uuid, first->uuid);
    assert_non_null(statics_add(&statics, device, 4));
    assert_null(statics_add(&statics, device, 7));
    assert_int_equal(statics_add(&statics, device, 6)->first, 10);
    assert_null(statics_add(&statics, device, 1));
    assert_int_equal(statics_add(&statics, &statics.devices.devices[1], 33)->first, 0);
    statics_remove(&statics, statics_find(&statics, id));
    assert_null(statics_find(&statics, id));
    assert_int_equal(statics_add(&statics, device, 5)->first, 0);
    assert_null(statics_add(&statics, device, 2));
    assert_int_equal(statics_used_chunks(&statics, uuid), 15);
}

static void test_numbers_beyond_all_bounds(void **state)
{
    assert_null(statics_add(&statics, &statics.devices.devices[0], 0));
    assert_null(statics_add(&statics, &statics.devices.devices[0], 17));
    assert_null(statics_add(&statics, &statics.devices.devices[0], ~0u));
}

static void test_names(void **state)
{
    const struct static_partition *partition =
        statics_add(&statics, &statics.devices.devices[1], 2);
    char name[96];

    assert_ptr_equal(statics_device(&statics, "1"), &statics.devices.devices[1]);
    assert_ptr_equal(statics_device(&statics, "GPU-11"), &statics.devices.devices[1]);
    assert_null(statics_device(&statics, "GPU-1"));
    assert_null(statics_device(&statics, "2"));
    snprintf(name, sizeof(name), "GPU-11/%s", partition->id);
    assert_ptr_equal(statics_find(&statics, name), partition);
    snprintf(name, sizeof(name), "GPU-10/%s", partition->id);
    assert_null(statics_find(&statics, name));
    assert_null(statics_find(&statics, "GPU-11/"));
    assert_null(statics_find(&statics, ""));
}

static void test_binding(void **state)
{
    struct server_limits limits = {.sm_centipercent = 2500};
    struct hello hello = {.magic = 0};
    const struct static_partition *partition;

    statics_add(&statics, &statics.devices.devices[1], 2);
    partition = statics_add(&statics, &statics.devices.devices[1], 3);
    statics.on = false;
    assert_true(statics_bind(&statics, &statics.devices, &hello, &limits));
    assert_int_equal(limits.fixed_only, 0);
    statics.on = true;
    assert_false(statics_bind(&statics, &statics.devices, &hello, &limits));
    assert_int_equal(limits.fixed_only, 1);
    assert_int_equal(limits.fixed_count, 0);
    strcpy(hello.sm_partition, partition->id);
    assert_true(statics_bind(&statics, &statics.devices, &hello, &limits));
    assert_int_equal(limits.fixed_device, 1);
    assert_int_equal(limits.fixed_first, 8);
    assert_int_equal(limits.fixed_count, 12);
    assert_int_equal(limits.sm_centipercent, 10000);
    assert_true(statics_holds(partition, &statics.devices, &limits));
    assert_false(statics_holds(&statics.partition[0], &statics.devices, &limits));
}

static struct static_partition *note(const char *name, const char *device, unsigned chunks,
                                     bool takes_remainder)
{
    return statics_note(&statics, name, device, chunks, takes_remainder);
}

/* Noted before anybody knows of devices, placed when a server tells of them. */
static void test_begin(void **state)
{
    struct server_ready devices = statics.devices;
    struct static_partition *small, *rest;
    char name[96];

    statics.version3 = true;
    statics.devices.device_count = 0;
    small = note("small", "0", 2, false);
    rest = note("rest", "GPU-10", 13, true);
    note("much", "0", 2, false);
    note("nowhere", "7", 1, false);
    snprintf(name, sizeof(name), "0/%s", small->id);
    assert_ptr_equal(statics_find(&statics, name), small);
    assert_string_equal(small->uuid, "");
    assert_int_equal(statics_begin(&statics, &devices), 2);
    assert_ptr_equal(statics_find(&statics, name), small);
    snprintf(name, sizeof(name), "GPU-1010/%s", small->id);
    assert_ptr_equal(statics_find(&statics, name), small);
    assert_int_equal(small->first, 0);
    assert_int_equal(rest->first, 3);
    assert_int_equal(statics_sms(rest), 13 * 8 + 4);
    assert_ptr_equal(statics_named(&statics, "rest", "0"), rest);
    assert_null(statics_named(&statics, "rest", "1"));
    statics_remove(&statics, small);
    assert_int_equal(statics_begin(&statics, &devices), 1);
    assert_string_equal(statics.partition[1].name, "much");
    assert_int_equal(statics.partition[1].first, 0);
}

static void test_too_many(void **state)
{
    for (unsigned i = 0; i < STATICS_MAX; i++)
        assert_non_null(note("x", "0", 1, false));
    assert_null(note("x", "0", 1, false));
    assert_null(statics_add(&statics, &statics.devices.devices[0], 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_chunks, setup),
        cmocka_unit_test_setup(test_no_two_overlap, setup),
        cmocka_unit_test_setup(test_numbers_beyond_all_bounds, setup),
        cmocka_unit_test_setup(test_names, setup),
        cmocka_unit_test_setup(test_binding, setup),
        cmocka_unit_test_setup(test_begin, setup),
        cmocka_unit_test_setup(test_too_many, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
