/* SPDX-License-Identifier: Apache-2.0 */
/* Splits of 132 multiprocessors of which 120 are in whole groups of eight, as an H100 has them. */
#include "cuda_sm_resource.h"

#include "unit.h"

#define LITTLE CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING

static CUdevResource device_of(unsigned count, unsigned coscheduled)
{
    struct sm_set set = {.unit = 2, .least = 8, .scheduled = 8};
    CUdevResource resource;

    sm_set_fill(&set, count, coscheduled);
    sm_set_to_resource(&set, &resource);
    return resource;
}

static unsigned count_for(const CUdevResource *resource, unsigned cluster_size)
{
    struct sm_set set;

    assert_true(sm_set_from_resource(resource, &set));
    return sm_set_count_for_cluster(&set, cluster_size);
}

/* How many groups, and what is left of the 132. */
static void check_split(unsigned flags, unsigned least, unsigned groups, unsigned size)
{
    const CUdevResource all = device_of(132, 120);
    CUdevResource parts[70], rest;
    unsigned count = 70;

    assert_int_equal(sm_set_split(parts, &count, &all, &rest, flags, least), CUDA_SUCCESS);
    assert_int_equal(count, groups);
    assert_int_equal(rest.sm.smCount, 132 - groups * size);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(parts[i].sm.smCount, size);
        assert_int_equal(count_for(&parts[i], 2), size);
        assert_true((count_for(&parts[i], 8) >= 8) == !(flags & LITTLE));
    }
}

static void test_splits_are_those_of_an_h100(void **state)
{
    check_split(0, 1, 15, 8);
    check_split(0, 8, 15, 8);
    check_split(0, 12, 8, 16);
    check_split(0, 18, 5, 24);
    check_split(0, 32, 4, 32);
    check_split(0, 42, 2, 48);
    check_split(0, 66, 1, 72);
    check_split(0, 130, 1, 132);
    check_split(LITTLE, 2, 66, 2);
    check_split(LITTLE, 12, 11, 12);
    check_split(LITTLE, 66, 2, 66);
}

static void test_the_remainder_has_the_whole_groups(void **state)
{
    const CUdevResource all = device_of(132, 120);
    CUdevResource part, rest;
    unsigned count = 1;

    assert_int_equal(sm_set_split(&part, &count, &all, &rest, 0, 32), CUDA_SUCCESS);
    assert_int_equal(count_for(&part, 8), 32);
    assert_int_equal(count_for(&rest, 8), 88);
    count = 1;
    assert_int_equal(sm_set_split(&part, &count, &all, &rest, LITTLE, 10), CUDA_SUCCESS);
    assert_int_equal(count_for(&part, 8), 0);
    assert_int_equal(count_for(&rest, 2), 122);
    assert_int_equal(count_for(&rest, 8), 104);
    assert_int_equal(count_for(&rest, 16), 0);
}

/* Each part keeps the clusters that it takes, and gives the others none. */
static void test_parts_that_are_joined_keep_their_clusters(void **state)
{
    const CUdevResource all = device_of(132, 120);
    CUdevResource eights[15], pairs[66], rest;
    struct sm_set joined;
    unsigned count = 15;

    assert_int_equal(sm_set_split(eights, &count, &all, &rest, 0, 8), CUDA_SUCCESS);
    count = 66;
    assert_int_equal(sm_set_split(pairs, &count, &all, &rest, LITTLE, 2), CUDA_SUCCESS);
    const CUdevResource both[] = {eights[0], eights[3], pairs[65]};
    assert_int_equal(sm_set_join(both, 3, &joined), CUDA_SUCCESS);
    assert_int_equal(sm_set_count_for_cluster(&joined, 2), 18);
    assert_int_equal(sm_set_count_for_cluster(&joined, 4), 16);
    assert_int_equal(sm_set_count_for_cluster(&joined, 8), 16);
    assert_int_equal(sm_set_join(pairs, 4, &joined), CUDA_SUCCESS);
    assert_int_equal(sm_set_count_for_cluster(&joined, 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splits_are_those_of_an_h100),
        cmocka_unit_test(test_the_remainder_has_the_whole_groups),
        cmocka_unit_test(test_parts_that_are_joined_keep_their_clusters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
