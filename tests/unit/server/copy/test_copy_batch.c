/* SPDX-License-Identifier: Apache-2.0 */
/* Small copies that a client has sent together. */
#include <string.h>

#include "copy.h"
#include "copy_batch.h"
#include "copy_kernel.h"
#include "copy_state.h"
#include "fake_driver.h"
#include "memory.h"
#include "small_copy.h"

#define VARIABLE 0x200000000000ull
#define VARIABLE_SIZE 65536ull
#define FOREIGN 0x300000000000ull /* memory of another device */
#define MAPPED 0x400000000000ull  /* a mapping of the client's own */
#define KERNEL ((CUfunction)5)

static CUresult allow(struct fixture *fixture, enum granule_kind kind, unsigned part,
                      uint64_t address)
{
    const struct granule granule = {
        .kind = kind, .part = part, .address = address, .size = VARIABLE_SIZE, .fd = -1};

    return memory_allow(fixture->session, &granule);
}

static struct device *device_of(struct fixture *fixture)
{
    return &fixture->server.devices.device[0];
}

static uint64_t host_of(const struct fixture *fixture)
{
    return fixture->window.host_base;
}

static int setup(void **state)
{
    if (fixture_setup(state))
        return -1;
    struct fixture *fixture = *state;
    fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);
    device_of(fixture)->copies->kernel = KERNEL;
    fake_trace();
    return allow(fixture, GRANULE_SHARED, 1, host_of(fixture)) ||
           allow(fixture, GRANULE_GLOBAL, 0, VARIABLE) ||
           allow(fixture, GRANULE_DEVICE, 1, FOREIGN) || allow(fixture, GRANULE_MAPPED, 0, MAPPED);
}

static int teardown(void **state)
{
    memory_release_all(((struct fixture *)*state)->session);
    return fixture_teardown(state);
}

static CUresult send(struct fixture *fixture, const void *copies, size_t size)
{
    const struct wire_fnCopyBatch in = {.seq = 1, .copies = copies, .copies_size = (uint32_t)size};

    return serve_fnCopyBatch(
        fixture->session, &in,
        session_lookup(fixture->session, WIRE_STREAM, fixture_handle(WIRE_STREAM, 1)));
}

static CUresult copy(struct fixture *fixture, uint64_t dst, uint64_t src, uint64_t size)
{
    const struct small_copy copies[] = {{VARIABLE, host_of(fixture), 3}, {dst, src, size}};

    return send(fixture, copies, sizeof(copies));
}

#define BY_KERNEL "launch s1 f5 0 1536; write s1 1; "
#define REFUSED "write s1 1; "

static void one_launch_makes_them_all(void **state)
{
    struct fixture *fixture = *state;
    uint64_t host = host_of(fixture), count, bytes, ways[COPY_WAYS];

    assert_int_equal(copy(fixture, host + 1, VARIABLE + 1, 17), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), BY_KERNEL);
    copy_counters(fixture->session, &count, &bytes);
    copy_direction_bytes(fixture->session, ways);
    assert_int_equal(count, 2);
    assert_int_equal(bytes, 20);
}

static void others_are_made_one_by_one(void **state)
{
    struct fixture *fixture = *state;
    uint64_t host = host_of(fixture);

    assert_int_equal(copy(fixture, FOREIGN, host, 5), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "copy s1 3; copy s1 5; write s1 1; ");
    assert_int_equal(copy(fixture, host, MAPPED, 5), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "copy s1 3; copy s1 5; write s1 1; ");
}

static void without_the_kernel_they_are_made_one_by_one(void **state)
{
    struct fixture *fixture = *state;
    uint64_t host = host_of(fixture);

    fake.refusal = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    assert_int_equal(copy(fixture, host, VARIABLE, 4), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "launch s1 f5 0 1536; copy s1 3; copy s1 4; write s1 1; ");
    device_of(fixture)->copies->kernel = NULL;
    assert_int_equal(copy(fixture, host, VARIABLE, 4), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "copy s1 3; copy s1 4; write s1 1; ");
}

/* One that is refused keeps back all, and the fence is written nevertheless. */
static void both_ends_are_the_clients_own(void **state)
{
    struct fixture *fixture = *state;
    uint64_t host = host_of(fixture), count, bytes;
    const uint64_t foreign[] = {0,
                                4096,
                                (uintptr_t)fixture,
                                host - 1,
                                host + VARIABLE_SIZE - 7,
                                VARIABLE - 1,
                                VARIABLE + VARIABLE_SIZE - 7,
                                UINT64_MAX - 3,
                                UINT64_MAX};

    for (unsigned i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        assert_int_equal(copy(fixture, foreign[i], host, 8), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(copy(fixture, VARIABLE, foreign[i], 8), CUDA_ERROR_INVALID_VALUE);
        assert_string_equal(fake_trace(), REFUSED REFUSED);
    }
    copy_counters(fixture->session, &count, &bytes);
    assert_int_equal(count, 0);
}

static void sizes_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    uint64_t host = host_of(fixture);

    assert_int_equal(copy(fixture, VARIABLE, host, SMALL_COPY_MAX), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), BY_KERNEL);
    assert_int_equal(copy(fixture, VARIABLE, host, SMALL_COPY_MAX + 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy(fixture, VARIABLE, host, UINT64_MAX), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy(fixture, VARIABLE, host, 0), CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(fake_trace(), REFUSED REFUSED REFUSED);
}

static void so_is_their_number(void **state)
{
    struct fixture *fixture = *state;
    struct small_copy copies[SMALL_COPIES_MAX + 1];

    for (unsigned i = 0; i <= SMALL_COPIES_MAX; i++)
        copies[i] = (struct small_copy){VARIABLE + 8 * i, host_of(fixture) + 8 * i, 7};
    assert_int_equal(send(fixture, copies, SMALL_COPIES_MAX * sizeof(*copies)), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), BY_KERNEL);
    assert_int_equal(send(fixture, copies, sizeof(copies)), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(send(fixture, copies, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(send(fixture, copies, sizeof(*copies) + 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(send(fixture, copies, sizeof(*copies) - 8), CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(fake_trace(), REFUSED REFUSED REFUSED REFUSED);
}

/* What the launch gives to the kernel. */
static struct {
    unsigned blocks, threads;
    struct small_copy copies[SMALL_COPIES_MAX];
} launched;

static CUresult keep_launch(const CUlaunchConfig *config, CUfunction function, void **params,
                            void **extra)
{
    (void)function, (void)params;
    launched.blocks = config->gridDimX;
    launched.threads = config->blockDimX;
    assert_int_equal(*(size_t *)extra[3], sizeof(launched.copies));
    memcpy(launched.copies, extra[1], sizeof(launched.copies));
    return CUDA_SUCCESS;
}

/* A message may lie at any address. */
static void the_kernel_gets_what_was_sent(void **state)
{
    struct fixture *fixture = *state;
    const struct small_copy copies[] = {{VARIABLE, host_of(fixture), SMALL_COPY_MAX},
                                        {VARIABLE + 9000, host_of(fixture) + 3, 11}};
    unsigned char shifted[sizeof(copies) + 1];

    driver.cuLaunchKernelEx = keep_launch;
    memcpy(shifted + 1, copies, sizeof(copies));
    assert_int_equal(send(fixture, shifted + 1, sizeof(copies)), CUDA_SUCCESS);
    assert_int_equal(launched.blocks, 2);
    assert_in_range(launched.threads, SMALL_COPY_MAX / 8, 1024);
    assert_memory_equal(launched.copies, copies, sizeof(copies));
    assert_int_equal(send(fixture, &copies[1], sizeof(copies[1])), CUDA_SUCCESS);
    assert_int_equal(launched.blocks, 1);
    assert_int_equal(launched.threads, 32);
}

static void the_longest_copy_has_a_thread_for_each_word(void **state)
{
    struct fixture *fixture = *state;

    driver.cuLaunchKernelEx = keep_launch;
    for (unsigned size = 1; size <= SMALL_COPY_MAX; size += size / 2 + 1) {
        const struct small_copy copies[] = {{VARIABLE, host_of(fixture), size},
                                            {VARIABLE, host_of(fixture), 1}};

        assert_int_equal(send(fixture, copies, sizeof(copies)), CUDA_SUCCESS);
        assert_int_equal(launched.threads % 32, 0);
        assert_in_range(launched.threads, size / 8 + 14, 1024);
    }
}

static CUresult load_nothing(CUlibrary *ret_library, const void *code, CUjit_option *options,
                             void **values, unsigned count, CUlibraryOption *library_options,
                             void **library_values, unsigned library_count)
{
    (void)ret_library, (void)code, (void)options, (void)values, (void)count;
    (void)library_options, (void)library_values, (void)library_count;
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

static void a_driver_may_refuse_the_code(void **state)
{
    struct fixture *fixture = *state;

    device_of(fixture)->copies->kernel = NULL;
    driver.cuLibraryLoadData = load_nothing;
    copy_kernel_load(device_of(fixture));
    assert_false(copy_kernel_is_loaded(device_of(fixture)));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(one_launch_makes_them_all),
        CASE(others_are_made_one_by_one),
        CASE(without_the_kernel_they_are_made_one_by_one),
        CASE(both_ends_are_the_clients_own),
        CASE(sizes_are_bounded),
        CASE(so_is_their_number),
        CASE(the_kernel_gets_what_was_sent),
        CASE(the_longest_copy_has_a_thread_for_each_word),
        CASE(a_driver_may_refuse_the_code),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
