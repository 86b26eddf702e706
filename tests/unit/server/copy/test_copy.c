/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and memsets that reach beyond the client's own memory. */
#include "fake_driver.h"
#include "memory.h"

#define OWN 0x200000000000ull
#define OWN_SIZE 65536ull

static int setup(void **state)
{
    const struct granule own = {.kind = GRANULE_SHARED, .address = OWN, .size = OWN_SIZE, .fd = -1};

    if (fixture_setup(state))
        return -1;
    struct fixture *fixture = *state;
    fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);
    fake_trace();
    return memory_allow(fixture->session, &own);
}

static int teardown(void **state)
{
    memory_release_all(((struct fixture *)*state)->session);
    return fixture_teardown(state);
}

static struct stream *stream_of(struct fixture *fixture)
{
    return session_lookup(fixture->session, WIRE_STREAM, fixture_handle(WIRE_STREAM, 1));
}

static CUresult copy(struct fixture *fixture, uint64_t dst, uint64_t src, uint64_t size)
{
    const struct wire_cuMemcpyAsync in = {.dst = dst, .src = src, .ByteCount = size, .seq = 1};

    return serve_cuMemcpyAsync(fixture->session, &in, stream_of(fixture));
}

static void copy_inside_passes(void **state)
{
    assert_int_equal(copy(*state, OWN, OWN + 4096, 4096), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "copy s1 4096; write s1 1; ");
    assert_int_equal(copy(*state, OWN, OWN, 0), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "write s1 1; ");
}

static void copy_outside_only_writes_its_fence(void **state)
{
    assert_int_equal(copy(*state, OWN + OWN_SIZE - 1, OWN, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy(*state, OWN, OWN - 1, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy(*state, OWN, OWN, UINT64_MAX), CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(fake_trace(), "write s1 1; write s1 1; write s1 1; ");
}

static CUresult copy_box(struct fixture *fixture, uint64_t pitch, uint64_t slice_rows,
                         uint64_t width, uint64_t height, uint64_t depth)
{
    const struct wire_cuMemcpy3DAsync_v2 in = {.dst = OWN,
                                               .src = OWN,
                                               .dst_pitch = pitch,
                                               .src_pitch = pitch,
                                               .dst_height = slice_rows,
                                               .src_height = slice_rows,
                                               .width = width,
                                               .height = height,
                                               .depth = depth};

    return serve_cuMemcpy3DAsync_v2(fixture->session, &in, stream_of(fixture));
}

static void box_is_measured_to_its_last_byte(void **state)
{
    assert_int_equal(copy_box(*state, 1024, 16, 1024, 16, 4), CUDA_SUCCESS); /* all 65536 bytes */
    assert_int_equal(copy_box(*state, 1024, 32, 1024, 16, 2), CUDA_SUCCESS);
    assert_int_equal(copy_box(*state, 1024, 16, 1025, 16, 4), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_box(*state, 1024, 17, 1024, 16, 4), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_box(*state, 0, 0, 64, 1, 1), CUDA_SUCCESS); /* pitch means nothing */
}

static void box_that_overflows_is_refused(void **state)
{
    assert_int_equal(copy_box(*state, 1ull << 63, 2, 1, 2, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_box(*state, 1ull << 32, 1ull << 32, 1, 1, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_box(*state, UINT64_MAX, 1, UINT64_MAX, 3, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_box(*state, 0, 0, UINT64_MAX, 1, 1), CUDA_ERROR_INVALID_VALUE);
    fake_trace();
}

static CUresult fill(struct fixture *fixture, uint32_t element, uint64_t width, uint64_t height)
{
    const struct wire_fnMemset in = {
        .dst = OWN, .value = 7, .element_size = element, .width = width, .height = height};

    return serve_fnMemset(fixture->session, &in, stream_of(fixture));
}

static void fill_is_checked(void **state)
{
    assert_int_equal(fill(*state, 4, OWN_SIZE / 4, 1), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "fill s1 7 16384; ");
    assert_int_equal(fill(*state, 4, OWN_SIZE / 4 + 1, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fill(*state, 3, 1, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fill(*state, 4, 1ull << 62, 1), CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(fake_trace(), "");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(copy_inside_passes),
        CASE(copy_outside_only_writes_its_fence),
        CASE(box_is_measured_to_its_last_byte),
        CASE(box_that_overflows_is_refused),
        CASE(fill_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
