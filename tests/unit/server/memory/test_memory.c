/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Granules: limits, places in the window, and which addresses count as the client's.
 */
#include <unistd.h>

#include "fake_driver.h"
#include "memory.h"
#include "memory_state.h"
#include "server_life.h"

#define MIB (1ull << 20)

static CUresult create(struct fixture *fixture, uint64_t size, uint64_t *ret_address)
{
    const struct wire_fnGranuleCreate in = {.size = size, .room = size};
    struct wire_fnGranuleCreate_reply out = {0};
    CUresult result = serve_fnGranuleCreate(fixture->session, &in, &out);

    *ret_address = out.address;
    return result;
}

static CUresult release(struct fixture *fixture, uint64_t address)
{
    const struct wire_fnGranuleRelease in = {.address = address};

    return serve_fnGranuleRelease(fixture->session, &in);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    memory_release_all(fixture->session);
    return fixture_teardown_connected(state);
}

static void granules_lie_side_by_side(void **state)
{
    struct fixture *fixture = *state;
    uint64_t a, b, c;

    assert_int_equal(create(fixture, 4 * MIB, &a), CUDA_SUCCESS);
    assert_int_equal(create(fixture, 2 * MIB, &b), CUDA_SUCCESS);
    assert_int_equal(a, fixture->window.base);
    assert_int_equal(b, a + 4 * MIB);
    assert_int_equal(release(fixture, a), CUDA_SUCCESS);
    assert_int_equal(create(fixture, 2 * MIB, &c), CUDA_SUCCESS);
    assert_int_equal(c, a); /* the first hole that is large enough */
    assert_int_equal(fixture->session->memory->device[0].used, 4 * MIB);
}

static void limit_holds(void **state)
{
    struct fixture *fixture = *state;
    uint64_t a, b;

    fixture->session->limits.memory[0] = 6 * MIB;
    assert_int_equal(create(fixture, 4 * MIB, &a), CUDA_SUCCESS);
    assert_int_equal(create(fixture, 4 * MIB, &b), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(create(fixture, 2 * MIB, &b), CUDA_SUCCESS);
    assert_int_equal(release(fixture, a), CUDA_SUCCESS);
    assert_int_equal(create(fixture, 4 * MIB, &a), CUDA_SUCCESS);
}

static void refused_memory_is_not_charged(void **state)
{
    struct fixture *fixture = *state;
    uint64_t address;

    fake.refusal = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(create(fixture, 2 * MIB, &address), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(fixture->session->memory->device[0].used, 0);
    assert_int_equal(fixture->window.used.count, 0);
    assert_int_equal(fixture->session->memory->extents.count, 0);
}

static void invalid_requests_are_refused(void **state)
{
    struct fixture *fixture = *state;
    uint64_t address;

    assert_int_equal(create(fixture, 0, &address), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(create(fixture, MIB, &address), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(create(fixture, UINT64_MAX - 2 * MIB + 1, &address), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(create(fixture, 8ull << 30, &address), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(create(fixture, 2 * MIB, &address), CUDA_SUCCESS);
    assert_int_equal(release(fixture, address + 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(release(fixture, address), CUDA_SUCCESS);
    assert_int_equal(release(fixture, address), CUDA_ERROR_INVALID_VALUE);
}

static void only_whole_ranges_are_covered(void **state)
{
    struct fixture *fixture = *state;
    struct session *session = fixture->session;
    uint64_t a, b;

    create(fixture, 2 * MIB, &a);
    create(fixture, 2 * MIB, &b);
    assert_true(memory_covers(session, a, 4 * MIB)); /* across two granules */
    assert_true(memory_covers(session, b + 2 * MIB - 1, 1));
    assert_false(memory_covers(session, b + 2 * MIB - 1, 2));
    assert_false(memory_covers(session, a - 1, 2));
    assert_false(memory_covers(session, a, UINT64_MAX));
    assert_false(memory_covers(session, UINT64_MAX, 2));
    assert_int_equal(release(fixture, a), CUDA_SUCCESS);
    assert_false(memory_covers(session, a, 1));
    assert_true(memory_covers(session, b, 1));
}

static void free_memory_is_the_clients_share(void **state)
{
    struct fixture *fixture = *state;
    const struct wire_cuMemGetInfo_v2 in = {0};
    struct wire_cuMemGetInfo_v2_reply out;
    uint64_t address;

    fake.free_bytes = 100 * MIB;
    assert_int_equal(serve_cuMemGetInfo_v2(fixture->session, &in, &out), CUDA_SUCCESS);
    assert_int_equal(out.free, 100 * MIB);
    fixture->session->limits.memory[0] = 10 * MIB;
    create(fixture, 2 * MIB, &address);
    assert_int_equal(serve_cuMemGetInfo_v2(fixture->session, &in, &out), CUDA_SUCCESS);
    assert_int_equal(out.free, 8 * MIB);
    assert_int_equal(out.total, 1024 * MIB);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup_connected, teardown)
    const struct CMUnitTest tests[] = {
        CASE(granules_lie_side_by_side),     CASE(limit_holds),
        CASE(refused_memory_is_not_charged), CASE(invalid_requests_are_refused),
        CASE(only_whole_ranges_are_covered), CASE(free_memory_is_the_clients_share),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
