/* SPDX-License-Identifier: Apache-2.0 */
/* The account of what fits into a context without waiting for its kernels. */
#include "capacity.h"
#include "fake_driver.h"
#include "gate.h"

static int streams, streams_most, streams_fit;

static CUresult CUDAAPI create_stream(CUstream *stream, unsigned flags, int priority)
{
    if (streams == streams_fit)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *stream = (CUstream)(uintptr_t)++streams;
    if (streams_most < streams)
        streams_most = streams;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI destroy_stream(CUstream stream)
{
    streams--;
    return CUDA_SUCCESS;
}

static const struct device *device_of(struct fixture *fixture)
{
    streams = streams_most = 0;
    streams_fit = 1000;
    driver.cuStreamCreateWithPriority = create_stream;
    driver.cuStreamDestroy_v2 = destroy_stream;
    const struct device *device = &fixture->server.devices.device[0];
    for (unsigned i = 0; i < FIXTURE_CAPACITY; i++)
        assert_true(capacity_take(device, CAPACITY_STREAM));
    return device;
}

static void use_up(const struct device *device)
{
    while (capacity_take(device, CAPACITY_STREAM))
        ;
}

/* As many streams of clients as there is capacity for. Returns how many. */
static unsigned make_streams(const struct device *device)
{
    unsigned count = 0;

    for (; capacity_take(device, CAPACITY_STREAM); count++)
        capacity_note_stream(device, 1);
    return count;
}

static unsigned count_left(const struct device *device)
{
    unsigned count = 0;

    while (capacity_take(device, CAPACITY_STREAM))
        count++;
    return count;
}

static void an_object_that_fits_is_created_at_once(void **state)
{
    struct fixture *fixture = *state;
    const struct device *device = device_of(fixture);
    struct capacity_use use;

    assert_int_equal(capacity_begin(fixture->session, device, 1, "test", &use), CUDA_SUCCESS);
    assert_false(use.grows);
    capacity_end(fixture->session, device, &use, CUDA_SUCCESS);
    assert_int_equal(streams_most, 0);
    assert_false(capacity_is_low(device));
}

static void a_failed_object_takes_nothing(void **state)
{
    struct fixture *fixture = *state;
    const struct device *device = device_of(fixture);
    struct capacity_use use;

    use_up(device);
    capacity_give(device, 1);
    assert_int_equal(capacity_begin(fixture->session, device, 1, "test", &use), CUDA_SUCCESS);
    capacity_end(fixture->session, device, &use, CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(count_left(device), 1);
}

/* In an idle point, and then for the next ones as well. */
static void more_is_taken_when_all_is_used(void **state)
{
    struct fixture *fixture = *state;
    const struct device *device = device_of(fixture);
    struct capacity_use use;

    use_up(device);
    assert_true(capacity_is_low(device));
    assert_int_equal(capacity_begin(fixture->session, device, 1, "test", &use), CUDA_SUCCESS);
    assert_true(use.grows);
    assert_false(gate_try_close(device->gate));
    capacity_end(fixture->session, device, &use, CUDA_SUCCESS);
    assert_true(gate_try_close(device->gate));
    gate_open(device->gate);
    assert_false(capacity_is_low(device));
    assert_int_equal(streams, 0);
    assert_true((unsigned)streams_most >= count_left(device));
}

/* Many clients get room for their graphs as well, up to a bound. */
static void streams_reserve_capacity_for_graphs(void **state)
{
    const struct device *device = device_of(*state);
    unsigned usual = make_streams(device), most;

    capacity_refill(device);
    unsigned more = make_streams(device);
    assert_true(more > usual);
    capacity_refill(device);
    most = make_streams(device);
    assert_true(most > more);
    capacity_refill(device);
    assert_int_equal(make_streams(device), most);
}

/* Else each idle point would reserve more for them. */
static void graphs_reserve_none_for_others(void **state)
{
    const struct device *device = device_of(*state);
    unsigned usual = count_left(device);

    for (unsigned round = 0; round < 10; round++) {
        capacity_refill(device);
        assert_int_equal(count_left(device), usual);
    }
}

/* The upkeep refills it while all are idle, so that launches get graphs when none is. */
static void less_than_streams_may_want_is_low(void **state)
{
    const struct device *device = device_of(*state);

    make_streams(device);
    capacity_refill(device);
    assert_false(capacity_is_low(device));
    while (!capacity_is_low(device)) {
        assert_true(capacity_take(device, CAPACITY_STREAM));
        capacity_note_stream(device, 1);
    }
    assert_false(capacity_is_scarce(device));
    capacity_refill(device);
    assert_false(capacity_is_low(device));
}

static void a_full_device_gives_none(void **state)
{
    struct fixture *fixture = *state;
    const struct device *device = device_of(fixture);

    use_up(device);
    streams_fit = 3;
    capacity_refill(device);
    assert_int_equal(streams, 0);
    assert_true(capacity_is_low(device));
}

/* A large graph fits in where a large one was, and not where streams were. */
static void large_graphs_have_their_own(void **state)
{
    struct fixture *fixture = *state;
    const struct device *device = device_of(fixture);
    struct capacity_use use;

    assert_false(capacity_take(device, 8));
    assert_int_equal(capacity_begin(fixture->session, device, 8, "test", &use), CUDA_SUCCESS);
    assert_true(use.grows);
    capacity_end(fixture->session, device, &use, CUDA_SUCCESS);
    assert_int_equal(streams_most, 0);
    capacity_give(device, 8);
    assert_true(capacity_take(device, 8));
    assert_false(capacity_take(device, 8));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(an_object_that_fits_is_created_at_once),
        CASE(a_failed_object_takes_nothing),
        CASE(more_is_taken_when_all_is_used),
        CASE(streams_reserve_capacity_for_graphs),
        CASE(graphs_reserve_none_for_others),
        CASE(less_than_streams_may_want_is_low),
        CASE(a_full_device_gives_none),
        CASE(large_graphs_have_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
