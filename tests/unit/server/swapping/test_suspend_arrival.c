/* SPDX-License-Identifier: Apache-2.0 */
/* A client that comes suspended from another server, and an order that came before its memory. */
#include "suspend_arrival.h"

#include <fcntl.h>
#include <unistd.h>

#include "fake_driver.h"
#include "memory_state.h"
#include "server_life.h"
#include "suspend_move.h"
#include "swapping.h"

static int setup(void **state)
{
    if (fixture_setup(state))
        return -1;
    struct fixture *fixture = *state;
    if (server_swapping_init(&fixture->server))
        return -1;
    return fixture->server.life->upper_part->init(fixture->session);
}

/* Its caller has been told that another order counts, and has removed the file. */
static void an_order_that_is_replaced_keeps_no_file(void **state)
{
    struct session *session = ((struct fixture *)*state)->session;
    struct program_suspend *suspend = program_suspend_of(session);

    suspend->to_file = true;
    suspend->file.writable = open("/dev/null", O_WRONLY | O_CLOEXEC);
    suspend->file.readable = open("/dev/null", O_RDONLY | O_CLOEXEC);
    session->memory->device[0].swapped = 1;
    assert_int_equal(serve_fnGranulesAdopted(session, &(struct wire_fnGranulesAdopted){}),
                     CUDA_SUCCESS);
    assert_true(suspend->out);
    assert_true(suspend->has_arrived);
    assert_false(suspend->to_file);
    assert_int_equal(suspend->file.writable, -1);
    assert_int_equal(suspend->file.readable, -1);
    session->memory->device[0].swapped = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_order_that_is_replaced_keeps_no_file, setup,
                                        fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
