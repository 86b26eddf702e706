/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares of a device with 132 multiprocessors, as NVIDIA's MPS grants them on an H100 of which 15
 * cluster groups of 8 are whole.
 */
#include <limits.h>
#include <stdlib.h>

#include "fake_driver.h"
#include "partition.h"
#include "sm_locate.h"
#include "sm_share.h"

#define SMS 132u
#define CLUSTER_SMS 8u
#define CLUSTERED (15u * CLUSTER_SMS) /* the first ones */

static unsigned made, gone;
static CUresult refusal;
static unsigned blocked; /* so many kernels have no block on the last multiprocessor */

/* ---- a driver whose parts are sets of multiprocessors ---- */

struct part {
    unsigned sms, for_clusters; /* how many, and on how many of them clusters of eight run */
    bool has[SMS];
};

static struct part parts[128];
static unsigned part_count;

static struct part *new_part(void)
{
    struct part *part = &parts[part_count++ % 128];

    *part = (struct part){0};
    return part;
}

static CUresult get_resource(CUdevice device, CUdevResource *ret_resource, CUdevResourceType type)
{
    (void)device;
    *ret_resource = (CUdevResource){.type = type,
                                    .sm = {.smCount = SMS,
                                           .minSmPartitionSize = CLUSTER_SMS,
                                           .smCoscheduledAlignment = CLUSTER_SMS}};
    return CUDA_SUCCESS;
}

/* A group says which one it is by the number of its first multiprocessor. Those of two come in an
 * order of their own. */
static CUresult split(CUdevResource *ret_groups, unsigned *count, const CUdevResource *input,
                      CUdevResource *ret_rest, unsigned flags, unsigned size)
{
    unsigned pairs = SMS / 2;

    (void)input;
    (void)ret_rest;
    *count = size == CLUSTER_SMS ? CLUSTERED / size : pairs;
    assert_int_equal(flags, size == CLUSTER_SMS ? 0 : 1);
    for (unsigned i = 0; i < *count; i++) {
        ret_groups[i] = (CUdevResource){.type = CU_DEV_RESOURCE_TYPE_SM, .sm = {.smCount = size}};
        ret_groups[i]._internal_padding[0] =
            (unsigned char)(size == CLUSTER_SMS ? i * size : i * 25 % pairs * size);
    }
    return CUDA_SUCCESS;
}

static CUresult describe(CUdevResourceDesc *ret_description, CUdevResource *resources,
                         unsigned count)
{
    struct part *part = new_part();

    for (unsigned i = 0; i < count; i++) {
        unsigned size = resources[i].sm.smCount;
        for (unsigned sm = 0; sm < size; sm++) {
            bool *has = &part->has[resources[i]._internal_padding[0] + sm];
            assert_false(*has);
            *has = true;
        }
        part->sms += size;
        part->for_clusters += size == CLUSTER_SMS ? size : 0;
    }
    *ret_description = (CUdevResourceDesc)part;
    return CUDA_SUCCESS;
}

static CUresult create(CUgreenCtx *ret_green, CUdevResourceDesc description, CUdevice device,
                       unsigned flags)
{
    struct part *part = new_part();

    (void)device;
    (void)flags;
    if (refusal != CUDA_SUCCESS)
        return refusal;
    made++;
    *part = *(struct part *)description;
    *ret_green = (CUgreenCtx)part;
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

/* ---- a kernel that tells where it runs ---- */

static uint32_t sighting[1 + SM_NUMBERS_MAX];

static CUresult load(CUlibrary *ret_library, const void *code, CUjit_option *options, void **values,
                     unsigned count, CUlibraryOption *library_options, void **library_values,
                     unsigned library_count)
{
    *ret_library = NULL;
    return CUDA_SUCCESS;
}

static CUresult get_kernel(CUkernel *ret_kernel, CUlibrary library, const char *name)
{
    *ret_kernel = NULL;
    return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *ret_address, size_t size)
{
    assert_int_equal(size, sizeof(sighting));
    *ret_address = (CUdeviceptr)sighting;
    return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr address)
{
    (void)address;
    return CUDA_SUCCESS;
}

static CUresult clear(CUdeviceptr address, unsigned char value, size_t size, CUstream stream)
{
    (void)stream;
    memset((void *)address, value, size);
    return CUDA_SUCCESS;
}

static CUresult copy(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
    (void)stream;
    memcpy(to, (const void *)from, size);
    return CUDA_SUCCESS;
}

static CUresult launch(const CUlaunchConfig *config, CUfunction function, void **params,
                       void **extra)
{
    const struct part *part = (const struct part *)config->hStream;
    bool is_blocked = part->has[SMS - 1] && blocked;

    (void)function;
    (void)extra;
    blocked -= is_blocked;
    assert_int_equal(*(uint32_t *)params[1], part->sms);
    for (unsigned sm = 0; sm < SMS; sm++)
        if (part->has[sm] && !(is_blocked && sm == SMS - 1))
            sighting[1 + sm] = 1, sighting[0]++;
    return CUDA_SUCCESS;
}

static CUresult synchronize(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

static CUresult destroy_stream(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

static struct partitions *setup_device(struct fixture *fixture)
{
    struct device *device = &fixture->server.devices.device[0];

    device->record.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = SMS;
    device->record.attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = 2048;
    device->record.attributes[CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH] = 1;
    driver.cuDeviceGetDevResource = get_resource;
    driver.cuDevSmResourceSplitByCount = split;
    driver.cuDevResourceGenerateDesc = describe;
    driver.cuGreenCtxCreate = create;
    driver.cuGreenCtxDestroy = destroy;
    driver.cuGreenCtxStreamCreate = create_stream;
    driver.cuLibraryLoadData = load;
    driver.cuLibraryGetKernel = get_kernel;
    driver.cuMemAlloc_v2 = allocate;
    driver.cuMemFree_v2 = release;
    driver.cuMemsetD8Async = clear;
    driver.cuMemcpyDtoHAsync_v2 = copy;
    driver.cuLaunchKernelEx = launch;
    driver.cuStreamSynchronize = synchronize;
    driver.cuStreamDestroy_v2 = destroy_stream;
    refusal = CUDA_SUCCESS;
    made = gone = 0;
    partitions_init(&fixture->server.partitions[0], device);
    assert_int_equal(made, 0); /* a server without partitions makes no green context */
    sm_groups_order(&fixture->server.partitions[0].groups, device);
    made = gone = 0;
    return &fixture->server.partitions[0];
}

/* ---- what a partition has ---- */

static const struct part *part_of(const struct partition *partition)
{
    return (const struct part *)partition->green;
}

static unsigned count_common(const struct partition *a, const struct partition *b)
{
    unsigned common = 0;

    for (unsigned sm = 0; sm < SMS; sm++)
        common += part_of(a)->has[sm] && part_of(b)->has[sm];
    return common;
}

static struct partition *take(struct partitions *partitions, unsigned sm_count)
{
    struct partition *partition = NULL;

    assert_int_equal(partitions_take(partitions, NULL, sm_count, &partition), CUDA_SUCCESS);
    assert_int_equal(part_of(partition)->sms, sm_count);
    assert_int_equal(partition->sm_count, sm_count);
    return partition;
}

static struct partition *take_within(struct partitions *partitions, unsigned first, unsigned part,
                                     unsigned sm_count)
{
    struct partition *partition = NULL;

    assert_int_equal(partitions_take_within(partitions, NULL, first, part, sm_count, &partition),
                     CUDA_SUCCESS);
    assert_int_equal(part_of(partition)->sms, sm_count);
    for (unsigned sm = 0; sm < SMS; sm++)
        assert_false(part_of(partition)->has[sm] && (sm < first || sm >= first + part));
    return partition;
}

/* ---- tests ---- */

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
    assert_int_equal(partitions_grant(partitions, 1000), SMS);
}

/* Clusters of eight run in every share, on as much of it as is whole. */
static void shares_consist_of_cluster_groups(void **state)
{
    struct partitions *partitions = setup_device(*state);

    for (unsigned percent = 6; percent < 100; percent++) {
        unsigned sms = partitions_grant(partitions, percent * 100);
        unsigned whole = sms / CLUSTER_SMS * CLUSTER_SMS;
        struct partition *partition = take(partitions, sms);

        assert_int_equal(part_of(partition)->for_clusters, whole < CLUSTERED ? whole : CLUSTERED);
        partitions_put_back(partitions, partition);
        partitions_trim(partitions);
    }
}

static void shares_side_by_side_have_cluster_groups(void **state)
{
    struct partitions *partitions = setup_device(*state);
    struct partition *taken[11];

    for (unsigned i = 0; i < 11; i++) {
        taken[i] = take(partitions, 12);
        assert_int_equal(part_of(taken[i])->for_clusters, CLUSTER_SMS);
        for (unsigned other = 0; other < i; other++)
            assert_int_equal(count_common(taken[i], taken[other]), 0);
    }
    for (unsigned i = 0; i < 11; i++)
        free(taken[i]);
}

/* There are fifteen cluster groups, and each half would have eight. */
static void halves_of_a_device_have_nothing_in_common(void **state)
{
    struct partitions *partitions = setup_device(*state);
    struct partition *a = take(partitions, 66), *b = take(partitions, 66);

    assert_int_equal(count_common(a, b), 0);
    assert_int_equal(part_of(a)->for_clusters, 64);
    assert_int_equal(part_of(b)->for_clusters, 56);
    free(a);
    free(b);
}

/* Where nothing is free, a share has a cluster group even so. */
static void later_shares_have_a_cluster_group_in_common_with_others(void **state)
{
    struct partitions *partitions = setup_device(*state);
    struct partition *most = take(partitions, CLUSTERED), *small = take(partitions, 12);

    assert_int_equal(part_of(small)->for_clusters, CLUSTER_SMS);
    assert_int_equal(count_common(most, small), CLUSTER_SMS);
    free(most);
    free(small);
}

static void a_device_that_cannot_be_measured_has_shares_of_cluster_groups(void **state)
{
    struct partitions *partitions = setup_device(*state);

    blocked = UINT_MAX;
    partitions_init(partitions, partitions->device);
    sm_groups_order(&partitions->groups, partitions->device);
    blocked = 0;
    assert_int_equal(partitions_grant(partitions, 1000), 8);
    assert_int_equal(partitions_grant(partitions, 5000), 64);
    assert_int_equal(partitions_grant(partitions, 9900), CLUSTERED);
    assert_int_equal(partitions_round_up(partitions, 10), 16);
    assert_int_equal(partitions_round_up(partitions, 121), SMS);
    struct partition *partition = take(partitions, 64);
    assert_int_equal(part_of(partition)->for_clusters, 64);
    free(partition);
}

/* As on a busy machine that lacks CPUs for the software GPU. */
static void a_kernel_that_is_late_runs_again(void **state)
{
    struct partitions *partitions = setup_device(*state);

    blocked = 3;
    partitions_init(partitions, partitions->device);
    sm_groups_order(&partitions->groups, partitions->device);
    assert_int_equal(blocked, 0);
    assert_int_equal(partitions_grant(partitions, 1000), 12);
}

static void a_device_without_clusters_is_divided_into_pairs(void **state)
{
    struct fixture *fixture = *state;
    struct partitions *partitions = setup_device(fixture);

    fixture->server.devices.device[0].record.attributes[CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH] = 0;
    partitions_init(partitions, partitions->device);
    assert_int_equal(made, 0);
    struct partition *partition = take(partitions, 66);
    assert_int_equal(part_of(partition)->for_clusters, 0);
    free(partition);
}

static void partitions_avoid_each_other_and_are_reused(void **state)
{
    struct partitions *partitions = setup_device(*state);
    struct partition *a = take(partitions, 66), *b = take(partitions, 66);

    assert_int_equal(count_common(a, b), 0);
    partitions_put_back(partitions, a);
    struct partition *c = take(partitions, 66);
    assert_ptr_equal(c, a);
    assert_int_equal(made, 2);
    free(b);
    free(c);
}

static void badly_placed_partitions_are_not_reused(void **state)
{
    struct partitions *partitions = setup_device(*state);
    struct partition *a = take(partitions, 44);

    partitions_put_back(partitions, a);
    struct partition *large = take(partitions, 66), *b = take(partitions, 44);
    assert_int_equal(count_common(large, b), 0);
    assert_true(count_common(large, a) > 0);
    partitions_put_back(partitions, large);
    partitions_put_back(partitions, b);
    partitions_trim(partitions);
    assert_int_equal(made, 3);
    assert_int_equal(gone, 3);
}

static void a_share_of_a_static_partition_stays_in_it(void **state)
{
    struct partitions *partitions = setup_device(*state);
    struct partition *all = take_within(partitions, 16, 16, 16),
                     *first = take_within(partitions, 16, 16, 8),
                     *second = take_within(partitions, 16, 16, 8), *none = NULL;

    assert_int_equal(part_of(all)->for_clusters, 16);
    assert_int_equal(part_of(second)->for_clusters, 8);
    assert_int_equal(count_common(first, second), 0);
    assert_int_equal(partitions_take_within(partitions, NULL, 128, 8, 8, &none),
                     CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    assert_int_equal(partitions_take_within(partitions, NULL, 16, 8, 16, &none),
                     CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    assert_false(
        partitions_make_spare(partitions)); /* static partitions are not created in advance */
    free(all);
    free(first);
    free(second);
}

/* The client counts its own groups: the first four are its cluster group. */
static void groups_that_a_client_names_are_those_of_its_share(void **state)
{
    struct partitions *partitions = setup_device(*state);
    const uint8_t first[] = {0, 1, 2, 3}, later[] = {1, 2, 3, 4, 5};
    struct partition *own = take(partitions, 12), *whole, *rest;

    assert_int_equal(partitions_count_clustered(partitions, own), 4);
    assert_int_equal(partitions_take_groups(partitions, NULL, own, first, 4, &whole), CUDA_SUCCESS);
    assert_int_equal(part_of(whole)->for_clusters, 8);
    assert_int_equal(partitions_take_groups(partitions, NULL, own, later, 5, &rest), CUDA_SUCCESS);
    assert_int_equal(part_of(rest)->for_clusters, 0);
    assert_int_equal(part_of(rest)->sms, 10);
    assert_int_equal(count_common(own, rest), 10);
    free(own);
    free(whole);
    free(rest);
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

    assert_false(partitions_want_spare(partitions));
    struct partition *mine = take(partitions, 32);
    assert_true(partitions_want_spare(partitions));
    while (partitions_make_spare(partitions))
        ;
    assert_false(partitions_want_spare(partitions));
    assert_int_equal(made, 4);
    struct partition *next = take(partitions, 32);
    assert_int_equal(count_common(mine, next), 0);
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
    struct partition *mine = take(partitions, 32);

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
    for (unsigned i = 0; i < partitions->groups.count; i++)
        assert_int_equal(partitions->users[i], 0);
}

static void streams_come_from_the_partition(void **state)
{
    struct fixture *fixture = *state;
    const struct device *device = &fixture->server.devices.device[0];
    struct partition *partition;

    partition = take(setup_device(fixture), 12);
    sm_share_find(fixture->session, device, 0)->partition = partition;
    struct stream *stream = fixture_stream(fixture, 1, 0);
    assert_ptr_equal(stream->driver, partition->green);
    stream->sm_share->partition = NULL;
    free(partition);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(shares_are_rounded_as_by_nvidia),
        CASE(a_device_that_cannot_be_divided_stays_whole),
        CASE(shares_consist_of_cluster_groups),
        CASE(shares_side_by_side_have_cluster_groups),
        CASE(halves_of_a_device_have_nothing_in_common),
        CASE(later_shares_have_a_cluster_group_in_common_with_others),
        CASE(a_device_that_cannot_be_measured_has_shares_of_cluster_groups),
        CASE(a_kernel_that_is_late_runs_again),
        CASE(a_device_without_clusters_is_divided_into_pairs),
        CASE(partitions_avoid_each_other_and_are_reused),
        CASE(badly_placed_partitions_are_not_reused),
        CASE(a_share_of_a_static_partition_stays_in_it),
        CASE(groups_that_a_client_names_are_those_of_its_share),
        CASE(idle_partitions_are_limited),
        CASE(spare_partitions_lie_beside_the_others),
        CASE(refused_partitions_are_not_tried_again),
        CASE(a_refused_partition_has_no_users),
        CASE(streams_come_from_the_partition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
