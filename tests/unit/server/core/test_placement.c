/* SPDX-License-Identifier: Apache-2.0 */
/* In which context a client works, and what it may do with objects of the other one. */
#include <stdlib.h>

#include "event.h"
#include "fake_driver.h"
#include "fence.h"
#include "gate.h"
#include "idle.h"
#include "placement.h"
#include "server_life.h"

static bool occupied[2]; /* by index of the context */
static unsigned looks;   /* after so many the spare context is free; 0 = it does not become free */
static CUresult answer;  /* what streams and events say */

static bool is_occupied(struct session *session, const struct device *device)
{
    assert_non_null(session);
    if (device->index == 1 && looks && --looks == 0)
        occupied[1] = false;
    return occupied[device->index];
}

static CUresult CUDAAPI query_stream(CUstream stream)
{
    assert_non_null(stream);
    return answer;
}

static CUresult CUDAAPI query_event(CUevent event)
{
    assert_non_null(event);
    return answer;
}

static struct session *session_of(void **state)
{
    return ((struct fixture *)*state)->session;
}

static struct devices *devices_of(void **state)
{
    return &((struct fixture *)*state)->server.devices;
}

/* The one device gets a spare context, with the subsystems' parts of the primary one. */
static int setup(void **state)
{
    int error = fixture_setup(state);
    struct devices *devices = devices_of(state);

    devices->device[1] = devices->device[0];
    devices->device[1].index = 1;
    devices->device[1].context = (CUcontext)0x77;
    devices->has_spares = true;
    occupied[0] = occupied[1] = false;
    answer = CUDA_SUCCESS;
    return error;
}

static int teardown(void **state)
{
    devices_of(state)->has_spares = false;
    return fixture_teardown(state);
}

static unsigned placed(void **state)
{
    struct server *server = session_of(state)->server;

    server->is_occupied = is_occupied;
    const struct device *device = session_place(session_of(state), "a call", 0);
    assert_ptr_equal(device, session_device(session_of(state), 0));
    return device->index;
}

static void without_long_work_the_primary_context_is_taken(void **state)
{
    assert_int_equal(placed(state), 0);
    occupied[0] = true;
    assert_int_equal(placed(state), 0);
    assert_false(session_is_in_spare(session_of(state), 0));
}

static void beside_long_work_the_spare_context_is_taken(void **state)
{
    occupied[0] = true;
    assert_int_equal(placed(state), 1);
    occupied[0] = false;
    assert_int_equal(placed(state), 1);
    assert_true(session_is_in_spare(session_of(state), 0));
    assert_false(session_stay_primary(session_of(state), 0));
}

static void a_client_page_locks_where_it_works(void **state)
{
    struct session *session = session_of(state);
    struct devices *devices = devices_of(state);

    session->server->is_occupied = is_occupied;
    occupied[0] = true;
    assert_ptr_equal(session_find_idle_device(session, 0), &devices->device[1]);
    assert_ptr_equal(session_device(session, 0), &devices->device[0]);
    assert_true(session_stay_primary(session, 0));
    assert_ptr_equal(session_find_idle_device(session, 0), &devices->device[0]);
}

static void with_long_work_in_both_the_primary_context_is_taken(void **state)
{
    occupied[0] = occupied[1] = true;
    assert_int_equal(placed(state), 0);
}

static void short_work_in_the_spare_context_is_waited_for(void **state)
{
    occupied[0] = occupied[1] = true;
    looks = 3;
    assert_int_equal(placed(state), 1);
    assert_int_equal(looks, 0);
}

static void a_client_with_a_share_stays_in_the_primary_context(void **state)
{
    assert_true(session_stay_primary(session_of(state), 0));
    occupied[0] = true;
    assert_int_equal(placed(state), 0);
}

static void there_is_no_other_device(void **state)
{
    assert_null(session_place(session_of(state), "a call", 1));
}

static bool has_long_work(void **state)
{
    return idle_has_long_work(session_of(state), &devices_of(state)->device[0]);
}

static void busy_stream(void **state)
{
    struct session *session = session_of(state);
    struct stream *stream = fixture_stream(*state, 1, CU_STREAM_NON_BLOCKING);

    session->phase = SESSION_SERVING;
    list_append(&session->server->sessions, &session->link);
    fence_expect_work(stream);
    driver.cuStreamQuery = query_stream;
    driver.cuEventQuery = query_event;
}

static void work_that_is_done_is_not_long(void **state)
{
    busy_stream(state);
    assert_false(has_long_work(state));
    list_remove(&session_of(state)->link);
}

static void work_that_goes_on_is_long_in_its_context_alone(void **state)
{
    busy_stream(state);
    answer = CUDA_ERROR_NOT_READY;
    assert_true(has_long_work(state));
    assert_false(idle_has_long_work(session_of(state), &devices_of(state)->device[1]));
    list_remove(&session_of(state)->link);
}

static void a_call_that_waits_for_all_streams_counts_as_long_work(void **state)
{
    struct gate *gate = devices_of(state)->device[0].gate;

    assert_int_equal(gate_close(gate, "a call"), CUDA_SUCCESS);
    assert_true(has_long_work(state));
    gate_open(gate);
    assert_false(has_long_work(state));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(without_long_work_the_primary_context_is_taken),
        CASE(beside_long_work_the_spare_context_is_taken),
        CASE(a_client_page_locks_where_it_works),
        CASE(with_long_work_in_both_the_primary_context_is_taken),
        CASE(short_work_in_the_spare_context_is_waited_for),
        CASE(a_client_with_a_share_stays_in_the_primary_context),
        CASE(there_is_no_other_device),
        CASE(work_that_is_done_is_not_long),
        CASE(work_that_goes_on_is_long_in_its_context_alone),
        CASE(a_call_that_waits_for_all_streams_counts_as_long_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
