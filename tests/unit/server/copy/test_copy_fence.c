/* SPDX-License-Identifier: Apache-2.0 */
/* Fences that a copy of two bytes writes, and those that have to be written whole. */
#include "copy_fence.h"

#include "copy_state.h"
#include "fake_driver.h"
#include "fence.h"

static uint16_t numbers[65536];

/* As if the table had been created: the fake driver's copies read this one. */
static int setup(void **state)
{
    if (fixture_setup(state))
        return -1;
    struct fixture *fixture = *state;
    for (unsigned i = 0; i < 65536; i++)
        numbers[i] = (uint16_t)i;
    fixture->server.devices.device[0].copies->numbers = (uintptr_t)numbers;
    fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);
    fake_trace();
    return 0;
}

static struct stream *stream_of(struct fixture *fixture)
{
    return session_lookup(fixture->session, WIRE_STREAM, fixture_handle(WIRE_STREAM, 1));
}

static uint32_t write(struct fixture *fixture, uint32_t seq)
{
    assert_int_equal(copy_fence_write(stream_of(fixture), seq), CUDA_SUCCESS);
    return fence_value(stream_of(fixture));
}

static void two_bytes_are_copied(void **state)
{
    assert_int_equal(write(*state, 1), 1);
    assert_int_equal(write(*state, 700), 700);
    assert_string_equal(fake_trace(), "down s1 2; down s1 2; ");
}

static void a_fence_that_changes_the_upper_half_is_written_whole(void **state)
{
    write(*state, 65535);
    fake_trace();
    assert_int_equal(write(*state, 65536), 65536);
    assert_int_equal(write(*state, 65537), 65537);
    assert_string_equal(fake_trace(), "write s1 65536; down s1 2; ");
}

/* Another fence in between may have changed it, too. */
static void all_fences_of_the_stream_count(void **state)
{
    fence_write(stream_of(*state), 0x20001);
    fake_trace();
    assert_int_equal(write(*state, 0x20002), 0x20002);
    assert_string_equal(fake_trace(), "down s1 2; ");
}

static void without_the_table_all_are_written_whole(void **state)
{
    struct fixture *fixture = *state;

    fixture->server.devices.device[0].copies->numbers = 0;
    assert_int_equal(write(fixture, 1), 1);
    assert_string_equal(fake_trace(), "write s1 1; ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_bytes_are_copied, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_fence_that_changes_the_upper_half_is_written_whole, setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(all_fences_of_the_stream_count, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(without_the_table_all_are_written_whole, setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
