/* SPDX-License-Identifier: Apache-2.0 */
/* Which copies use the shared stream, and what the client's stream waits for then. */
#include "shared_copy_stream.h"

#include "copy_state.h"
#include "fake_driver.h"
#include "fence.h"
#include "memory.h"
#include "sm_share.h"
#include "spare_events.h"

#define OWN 0x200000000000ull
#define OWN_SIZE 65536ull
#define SHARED ((CUstream)9)

static int setup(void **state)
{
    const struct granule own = {.kind = GRANULE_SHARED, .address = OWN, .size = OWN_SIZE, .fd = -1};

    if (fixture_setup(state))
        return -1;
    struct fixture *fixture = *state;
    fixture->server.devices.device[0].copies->shared_stream = SHARED;
    fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);
    fixture_stream(fixture, 2, CU_STREAM_NON_BLOCKING);
    spare_event_keep(&fixture->server.devices.device[0], (CUevent)7);
    fake_trace();
    return memory_allow(fixture->session, &own);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    CUevent spare;

    spare_event_take(&fixture->server.devices.device[0], &spare);
    memory_release_all(fixture->session);
    return fixture_teardown(state);
}

static struct stream *stream_of(struct fixture *fixture, uint32_t index)
{
    return session_lookup(fixture->session, WIRE_STREAM, fixture_handle(WIRE_STREAM, index));
}

static const char *copy_up(struct fixture *fixture, uint64_t size, uint32_t seq)
{
    const struct wire_fnCopyUp in = {.dst = OWN, .src = OWN, .ByteCount = size, .seq = seq};

    serve_fnCopyUp(fixture->session, &in, stream_of(fixture, 1));
    return fake_trace();
}

/* The GPU has not reached the fence yet. */
static void expect_fence(struct fixture *fixture, uint32_t index, uint32_t seq)
{
    fence_expect(stream_of(fixture, index), seq);
}

static void uses_the_shared_stream(void **state)
{
    assert_string_equal(copy_up(*state, 4096, 1),
                        "copy s9 4096; record e7 s9; wait s1 e7; write s1 1; ");
}

static void the_next_chunk_follows(void **state)
{
    copy_up(*state, 4096, 1);
    expect_fence(*state, 1, 1);
    *window_fence(&((struct fixture *)*state)->window, 1) = 0;
    assert_string_equal(copy_up(*state, 4096, 2),
                        "copy s9 4096; record e7 s9; wait s1 e7; write s1 2; ");
}

static void not_before_other_work_is_done(void **state)
{
    struct stream *stream = stream_of(*state, 1);

    stream_end_work(stream, 0, stream_begin_brief(stream));
    assert_string_equal(copy_up(*state, 4096, 1), "copy s1 4096; write s1 1; ");
}

static void not_beside_work_of_another_stream(void **state)
{
    expect_fence(*state, 2, 5);
    assert_string_equal(copy_up(*state, 4096, 1), "copy s1 4096; write s1 1; ");
    *window_fence(&((struct fixture *)*state)->window, 2) = 5;
    assert_string_equal(copy_up(*state, 4096, 2),
                        "copy s9 4096; record e7 s9; wait s1 e7; write s1 2; ");
}

static void not_in_a_partition(void **state)
{
    struct stream *stream = stream_of(*state, 1);
    struct partition partition = {0};

    stream->sm_share->partition = &partition;
    assert_false(shared_copy_stream_usable(stream));
    stream->sm_share->partition = NULL;
    assert_true(shared_copy_stream_usable(stream));
}

static void not_where_work_is_timed(void **state)
{
    struct fixture *fixture = *state;

    fixture->session->is_timed = true;
    assert_string_equal(copy_up(fixture, 4096, 1), "copy s1 4096; write s1 1; ");
}

static void nothing_outside_of_the_clients_memory(void **state)
{
    assert_string_equal(copy_up(*state, OWN_SIZE + 1, 1), "write s1 1; ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(uses_the_shared_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(the_next_chunk_follows, setup, teardown),
        cmocka_unit_test_setup_teardown(not_before_other_work_is_done, setup, teardown),
        cmocka_unit_test_setup_teardown(not_beside_work_of_another_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(not_in_a_partition, setup, teardown),
        cmocka_unit_test_setup_teardown(not_where_work_is_timed, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_outside_of_the_clients_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
