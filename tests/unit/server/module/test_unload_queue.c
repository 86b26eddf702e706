/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries in the unload queue are unloaded when no client is busy, or when there are too many. */
#include "unload_queue.h"

#include <stdlib.h>

#include "fake_driver.h"
#include "fence.h"
#include "gate.h"
#include "memory.h"
#include "server_life.h"
#include "server_module.h"
#include "upkeep.h"

static bool waiting; /* what every event answers */

static CUresult query(CUevent event)
{
    (void)event;
    return waiting ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static int setup(void **state)
{
    int error = fixture_setup(state);
    struct fixture *fixture = *state;

    fixture->server.life->no_spare_partitions = true;
    driver.cuEventQuery = query;
    waiting = false;
    return error;
}

static int teardown(void **state)
{
    waiting = false;
    return fixture_teardown(state);
}

static struct unload_queue *queue_of(struct fixture *fixture)
{
    return &server_module_cache(&fixture->server)->unload_queue;
}

static struct library *make_library(struct fixture *fixture)
{
    static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n";
    struct stored_image *image = fixture_image(fixture, text);
    struct library *library = library_create(image, NULL, 0);

    stored_image_unref(image);
    library->code = (struct compiled_image){.bytes = text, .size = sizeof(text)};
    return library;
}

static struct library *load(struct fixture *fixture)
{
    struct library *library = make_library(fixture);

    assert_int_equal(library_load(library), CUDA_SUCCESS);
    return library;
}

static void begin_a_wait(struct fixture *fixture)
{
    struct stream *stream = fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);

    assert_true(gate_enter(stream->device->gate, &stream->session->stop));
    gate_wait_record(gate_wait_expect(stream->device, stream->driver, 1), stream->driver);
    gate_leave(stream->device->gate);
    waiting = true;
}

/* Upkeep does something only in every fifth round. */
static void look(struct fixture *fixture, struct upkeep *upkeep)
{
    for (int i = 0; i < 5; i++)
        upkeep_run(&fixture->server, upkeep);
}

static void nothing_is_unloaded_at_once(void **state)
{
    struct unload_queue *queue = queue_of(*state);

    unload_queue_add(queue, load(*state), 100);
    unload_queue_add(queue, load(*state), 10);
    assert_string_equal(fake_trace(), "load l1; load l2; ");
    assert_true(unload_queue_unload(queue));
    assert_int_equal(queue->bytes, 10);
    assert_true(unload_queue_unload(queue));
    assert_string_equal(fake_trace(), "unload l1; unload l2; ");
    assert_false(unload_queue_unload(queue));
    assert_int_equal(queue->count, 0);
}

static void libraries_that_were_never_loaded_are_freed(void **state)
{
    unload_queue_add(queue_of(*state), make_library(*state), 100);
    unload_queue_add(queue_of(*state), NULL, 100);
    assert_false(unload_queue_unload(queue_of(*state)));
    assert_string_equal(fake_trace(), "");
}

static void not_while_a_stream_waits(void **state)
{
    unload_queue_add(queue_of(*state), load(*state), 100);
    begin_a_wait(*state);
    fake_trace();
    assert_false(unload_queue_unload(queue_of(*state)));
    assert_string_equal(fake_trace(), "");
    waiting = false;
    assert_true(unload_queue_unload(queue_of(*state)));
    assert_string_equal(fake_trace(), "unload l1; ");
}

static void their_number_is_limited(void **state)
{
    for (unsigned i = 0; i < UNLOAD_QUEUE_MAX; i++)
        unload_queue_add(queue_of(*state), load(*state), 1);
    struct library *last = load(*state);
    fake_trace();
    unload_queue_add(queue_of(*state), last, 1);
    assert_string_equal(fake_trace(), "unload l1; ");
    assert_int_equal(queue_of(*state)->count, UNLOAD_QUEUE_MAX);
}

static void their_bytes_are_limited(void **state)
{
    unload_queue_add(queue_of(*state), load(*state), UNLOAD_QUEUE_BYTES_MAX / 2);
    unload_queue_add(queue_of(*state), load(*state), UNLOAD_QUEUE_BYTES_MAX / 2);
    fake_trace();
    unload_queue_add(queue_of(*state), load(*state), 1);
    assert_string_equal(fake_trace(), "load l3; unload l1; ");
    unload_queue_add(queue_of(*state), load(*state), UNLOAD_QUEUE_BYTES_MAX + 1);
    assert_string_equal(fake_trace(), "load l4; unload l2; unload l3; unload l4; ");
    assert_int_equal(queue_of(*state)->bytes, 0);
}

static CUresult create(struct fixture *fixture)
{
    const CUmemAllocationProp prop = {0};
    CUmemGenericAllocationHandle handle;

    fake_trace();
    fake.refusal = CUDA_ERROR_OUT_OF_MEMORY;
    return memory_create(fixture->session, &fixture->server.devices.device[0], 7, &prop, &handle);
}

static void modules_are_unloaded_when_memory_is_short(void **state)
{
    assert_int_equal(create(*state), CUDA_ERROR_OUT_OF_MEMORY);
    assert_string_equal(fake_trace(), "create 7; ");
    unload_queue_add(queue_of(*state), load(*state), 1);
    unload_queue_add(queue_of(*state), load(*state), 1);
    assert_int_equal(create(*state), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "create 7; unload l1; unload l2; create 7; ");
}

static void set_phase(struct fixture *fixture, enum session_phase phase)
{
    list_remove(&fixture->session->link);
    fixture->session->phase = phase;
    list_append(&fixture->server.sessions, &fixture->session->link);
}

static void upkeep_unloads_when_no_client_is_busy(void **state)
{
    struct upkeep upkeep = {0};

    set_phase(*state, SESSION_ATTACHING);
    unload_queue_add(queue_of(*state), load(*state), 100);
    unload_queue_add(queue_of(*state), load(*state), 100);
    fake_trace();
    look(*state, &upkeep);
    assert_string_equal(fake_trace(), "");
    set_phase(*state, SESSION_SERVING);
    look(*state, &upkeep);
    assert_string_equal(fake_trace(), "unload l1; unload l2; ");
}

/* A client that attaches keeps the server busy, but has no work that would be waited for. */
static void upkeep_unloads_many_between_the_work_of_clients(void **state)
{
    struct fixture *fixture = *state;
    struct unload_queue *queue = queue_of(fixture);
    struct upkeep upkeep = {0};

    set_phase(fixture, SESSION_ATTACHING);
    for (unsigned i = 0; i < 2; i++)
        unload_queue_add(queue, load(fixture), UNLOAD_QUEUE_BYTES_MAX / UNLOAD_QUEUE_BUDGET / 2);
    look(fixture, &upkeep);
    assert_int_equal(queue->count, 2);
    unload_queue_add(queue, load(fixture), 1);
    look(fixture, &upkeep);
    assert_true(queue->count < 3);
}

/* Otherwise clients that load code would wait for that work, and all others with them. No client is
 * suspended, either, which would have set the time of the next attempt. */
static void upkeep_unloads_nothing_beside_long_work(void **state)
{
    struct fixture *fixture = *state;
    struct unload_queue *queue = queue_of(fixture);
    struct upkeep upkeep = {0};

    set_phase(fixture, SESSION_SERVING);
    fence_expect_work(fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING));
    unload_queue_add(queue, load(fixture), UNLOAD_QUEUE_BYTES_MAX);
    look(fixture, &upkeep);
    assert_int_equal(queue->count, 1);
    assert_int_equal(fixture->session->suspended.count, 0);
    assert_int_equal(upkeep.retry_at, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(nothing_is_unloaded_at_once),
        CASE(libraries_that_were_never_loaded_are_freed),
        CASE(not_while_a_stream_waits),
        CASE(their_number_is_limited),
        CASE(their_bytes_are_limited),
        CASE(modules_are_unloaded_when_memory_is_short),
        CASE(upkeep_unloads_when_no_client_is_busy),
        CASE(upkeep_unloads_many_between_the_work_of_clients),
        CASE(upkeep_unloads_nothing_beside_long_work),
    };

    return cmocka_run_group_tests_name("unload_queue", tests, NULL, NULL);
}
