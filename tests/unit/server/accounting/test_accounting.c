/* SPDX-License-Identifier: Apache-2.0 */
/* What a client is charged for between two looks at its streams. */
#include "accounting_state.h"
#include "clock.h"
#include "fake_driver.h"
#include "fence.h"
#include "launch_record.h"
#include "stream_state.h"

#define LOOK_NS (20 * NS_PER_MS)

static int setup(void **state)
{
    if (fixture_setup(state))
        return -1;
    struct fixture *fixture = *state;
    fixture->session->phase = SESSION_SERVING;
    list_append(&fixture->server.sessions, &fixture->session->link);
    return 0;
}

static void launch(struct stream *stream, uint32_t blocks)
{
    const uint32_t grid[3] = {blocks, 1, 1};

    launch_record(stream->session, 1, 1, "kernel");
    stream_note_kernel(stream, grid);
    fence_expect_work(stream);
}

static uint64_t gpu_ms(const struct fixture *fixture)
{
    struct server_usage usage;

    accounting_usage(fixture->session, &usage);
    return usage.gpu_ns[0] / NS_PER_MS;
}

static void look(struct fixture *fixture, unsigned times)
{
    while (times-- > 0)
        accounting_round(&fixture->server, LOOK_NS);
}

static void busy_until_the_fence_is_written(void **state)
{
    struct fixture *fixture = *state;
    struct stream *stream = fixture_stream(fixture, 1, 0);

    launch(stream, 4);
    fence_expect(stream, 1);
    look(fixture, 3); /* half of the first interval counts, as it was idle at its begin */
    assert_int_equal(gpu_ms(fixture), 50);
    fence_write_now(stream, 1);
    look(fixture, 3);
    assert_int_equal(gpu_ms(fixture), 60);
}

/* The driver says that the stream is idle, as the fake one always does. */
static void work_without_a_fence_ends_when_the_driver_says_so(void **state)
{
    struct fixture *fixture = *state;

    launch(fixture_stream(fixture, 1, 0), 4);
    look(fixture, 10);
    uint64_t charged = gpu_ms(fixture);
    assert_in_range(charged, 20, 40);
    look(fixture, 10);
    assert_int_equal(gpu_ms(fixture), charged);
}

static void fence_that_comes_when_the_driver_is_asked(void **state)
{
    struct fixture *fixture = *state;
    struct stream *stream = fixture_stream(fixture, 1, 0);

    launch(stream, 4);
    look(fixture, 1);
    fence_expect(stream, 1);
    look(fixture, 5);
    assert_int_equal(gpu_ms(fixture), 110);
}

/* Two clients would not count twice: it is the time in which any has kernels. */
static void share_of_the_time_with_kernels(void **state)
{
    struct fixture *fixture = *state;
    struct stream *stream = fixture_stream(fixture, 1, 0);
    struct server *server = &fixture->server;

    launch(stream, 4);
    fence_expect(stream, 1);
    look(fixture, 3);
    assert_int_equal(counter_get(&server->accounting->kernels_ns[0]), 3 * LOOK_NS);
    assert_int_equal(accounting_shared_ns(server), 0);
    server->accounting->seen_at = clock_ns() - 3 * LOOK_NS;
    assert_in_range(accounting_kernels_percent(server), 1, 100);
    fence_write_now(stream, 1);
    look(fixture, 3);
    assert_int_equal(accounting_kernels_percent(server), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(busy_until_the_fence_is_written, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(work_without_a_fence_ends_when_the_driver_says_so, setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(fence_that_comes_when_the_driver_is_asked, setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(share_of_the_time_with_kernels, setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
