/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of a device with 132 multiprocessors, as NVIDIA's MPS grants them on an H100. */
#include <stdlib.h>

#include "fake_driver.h"
#include "partition.h"
#include "sm_share.h"

static unsigned made, gone;
static CUresult refusal;

static CUresult get_resource(CUdevice device, CUdevResource *ret_resource, CUdevResourceType type)
{
    (void)device;
    *ret_resource = (CUdevResource){.type = type, .sm = {.smCount = 132}};
    return CUDA_SUCCESS;
}

static CUresult split(CUdevResource *ret_groups, unsigned *count, const CUdevResource *input,
                      CUdevResource *ret_rest, unsigned flags, unsigned size)
{
    (void)ret_rest;
    (void)flags;
    *count = input->sm.smCount / size;
    for (unsigned i = 0; i < *count; i++)
        ret_groups[i] = (CUdevResource){.type = input->type, .sm = {.smCount = size}};
    return CUDA_SUCCESS;
}

static CUresult describe(CUdevResourceDesc *ret_description, CUdevResource *parts, unsigned count)
{
    unsigned sms = 0;

    for (unsigned i = 0; i < count; i++)
        sms += parts[i].sm.smCount;
    *ret_description = (CUdevResourceDesc)(uintptr_t)sms;
    return CUDA_SUCCESS;
}

static CUresult create(CUgreenCtx *ret_green, CUdevResourceDesc description, CUdevice device,
                       unsigned flags)
{
    (void)device;
    (void)flags;
    if (refusal != CUDA_SUCCESS)
        return refusal;
    made++;
    *ret_green = (CUgreenCtx)description; /* its number of multiprocessors */
    return CUDA_SUCCESS;
}

static CUresult destroy(CUgreenCtx green)
{
    (void)green;
    gone++;
    return CUDA_SUCCESS;
}

static CUresult create_stream(CUstream *ret_stream, CUgreenCtx green, unsigned flags, int priority)
{
    (void)flags;
    (void)priority;
    *ret_stream = (CUstream)green;
    return CUDA_SUCCESS;
}

static struct partitions *setup_device(struct fixture *fixture)
{
    struct device *device = &fixture->server.devices.device[0];

    device->record.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 132;
    driver.cuDeviceGetDevResource = get_resource;
    driver.cuDevSmResourceSplitByCount = split;
    driver.cuDevResourceGenerateDesc = describe;
    driver.cuGreenCtxCreate = create;
    driver.cuGreenCtxDestroy = destroy;
    driver.cuGreenCtxStreamCreate = create_stream;
    made = gone = 0;
    refusal = CUDA_SUCCESS;
    partitions_init(&fixture->server.partitions[0], device);
    return &fixture->server.partitions[0];
}

static void shares_are_rounded_as_by_nvidia(void **state)
{
    static const unsigned table[][2] = {{5, 8},   {10, 12}, {25, 32},  {33, 42},
                                        {50, 66}, {75, 98}, {99, 130}, {100, 132}};
    struct partitions *partitions = setup_device(*state);

    for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_int_equal(partitions_grant(partitions, table[i][0] * 100), table[i][1]);
}

static void a_device_that_cannot_be_divided_stays_whole(void **state)
{
    struct partitions *partitions = setup_device(*state);

    driver.cuGreenCtxCreate = NULL;
    partitions_init(partitions, partitions->device);
    assert_int_equal(partitions_grant(partitions, 1000), 132);
}

static void partitions_avoid_each_other_and_are_reused(void **state)
{
    struct partitions *partitions = setup_device(*state);
    struct partition *a, *b, *c;

    assert_int_equal(partitions_take(partitions, NULL, 66, &a), CUDA_SUCCESS);
    assert_int_equal(partitions_take(partitions, NULL, 66, &b), CUDA_SUCCESS);
    assert_int_equal(a->first_group, 0);
    assert_int_equal(b->first_group, 33);
    assert_int_equal((uintptr_t)a->green, 66);
    partitions_put_back(partitions, a);
    assert_int_equal(partitions_take(partitions, NULL, 66, &c), CUDA_SUCCESS);
    assert_ptr_equal(c, a);
    assert_int_equal(made, 2);
    free(b);
    free(c);
}

static void badly_placed_partitions_are_not_reused(void **state)
{
    struct partitions *partitions = setup_device(*state);
    struct partition *a, *b, *large;

    assert_int_equal(partitions_take(partitions, NULL, 44, &a), CUDA_SUCCESS);
    partitions_put_back(partitions, a);
    assert_int_equal(partitions_take(partitions, NULL, 66, &large), CUDA_SUCCESS);
    assert_int_equal(large->first_group, 0);
    assert_int_equal(partitions_take(partitions, NULL, 44, &b), CUDA_SUCCESS);
    assert_int_equal(b->first_group, 33);
    partitions_put_back(partitions, large);
    partitions_put_back(partitions, b);
    partitions_trim(partitions);
    assert_int_equal(made, 3);
    assert_int_equal(gone, 3);
}

static void a_share_of_a_static_partition_stays_in_it(void **state)
{
    struct partitions *partitions = setup_device(*state);
    struct partition *all, *first, *second;

    assert_int_equal(partitions_take_within(partitions, NULL, 16, 16, 16, &all), CUDA_SUCCESS);
    assert_int_equal(all->first_group, 8);
    assert_int_equal(partitions_take_within(partitions, NULL, 16, 16, 8, &first), CUDA_SUCCESS);
    assert_int_equal(first->first_group, 8);
    assert_int_equal(partitions_take_within(partitions, NULL, 16, 16, 8, &second), CUDA_SUCCESS);
    assert_int_equal(second->first_group, 12);
    assert_int_equal(partitions_take_within(partitions, NULL, 128, 8, 8, &second),
                     CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    assert_int_equal(partitions_take_within(partitions, NULL, 16, 8, 16, &second),
                     CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    assert_false(
        partitions_make_spare(partitions)); /* static partitions are not created in advance */
    free(all);
    free(first);
    free(second);
}

static void idle_partitions_are_limited(void **state)
{
    struct partitions *partitions = setup_device(*state);
    struct partition *taken[40];

    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(partitions_take(partitions, NULL, 8, &taken[i]), CUDA_SUCCESS);
    for (unsigned i = 0; i < 40; i++)
        partitions_put_back(partitions, taken[i]);
    assert_int_equal(partitions->idle_count, PARTITIONS_IDLE_MAX);
    assert_int_equal(gone, 40 - PARTITIONS_IDLE_MAX);
    partitions_trim(partitions);
    assert_int_equal(gone, 40);
    assert_int_equal(partitions->idle_count, 0);
}

/* For the first client with a quarter of the device, the other quarters are created. */
static void spare_partitions_lie_beside_the_others(void **state)
{
    struct partitions *partitions = setup_device(*state);
    struct partition *mine, *next;

    assert_false(partitions_want_spare(partitions));
    assert_int_equal(partitions_take(partitions, NULL, 32, &mine), CUDA_SUCCESS);
    assert_true(partitions_want_spare(partitions));
    while (partitions_make_spare(partitions))
        ;
    assert_false(partitions_want_spare(partitions));
    assert_int_equal(made, 4);
    assert_int_equal(partitions_take(partitions, NULL, 32, &next), CUDA_SUCCESS);
    assert_int_equal(next->first_group % 16, 0);
    assert_int_not_equal(next->first_group, 0);
    assert_int_equal(made, 4);
    partitions_put_back(partitions, mine);
    partitions_put_back(partitions, next);
    partitions_trim(partitions);
    assert_false(partitions_make_spare(partitions));
    assert_int_equal(gone, made);
}

static void refused_partitions_are_not_tried_again(void **state)
{
    struct partitions *partitions = setup_device(*state);
    struct partition *mine;

    assert_int_equal(partitions_take(partitions, NULL, 32, &mine), CUDA_SUCCESS);
    refusal = CUDA_ERROR_OUT_OF_MEMORY;
    assert_false(partitions_make_spare(partitions));
    assert_false(partitions_want_spare(partitions));
    free(mine);
}

static void a_refused_partition_has_no_users(void **state)
{
    struct partitions *partitions = setup_device(*state);
    struct partition *partition = NULL;

    refusal = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(partitions_take(partitions, NULL, 8, &partition), CUDA_ERROR_OUT_OF_MEMORY);
    assert_null(partition);
    for (unsigned i = 0; i < partitions->group_count; i++)
        assert_int_equal(partitions->users[i], 0);
}

static void streams_come_from_the_partition(void **state)
{
    struct fixture *fixture = *state;
    const struct device *device = &fixture->server.devices.device[0];
    struct partition *partition;

    partitions_take(setup_device(fixture), NULL, 12, &partition);
    sm_share_find(fixture->session, device, 0)->partition = partition;
    struct stream *stream = fixture_stream(fixture, 1, 0);
    assert_int_equal((uintptr_t)stream->driver, 12);
    stream->sm_share->partition = NULL;
    free(partition);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(shares_are_rounded_as_by_nvidia),
        CASE(a_device_that_cannot_be_divided_stays_whole),
        CASE(partitions_avoid_each_other_and_are_reused),
        CASE(badly_placed_partitions_are_not_reused),
        CASE(a_share_of_a_static_partition_stays_in_it),
        CASE(idle_partitions_are_limited),
        CASE(spare_partitions_lie_beside_the_others),
        CASE(refused_partitions_are_not_tried_again),
        CASE(a_refused_partition_has_no_users),
        CASE(streams_come_from_the_partition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
