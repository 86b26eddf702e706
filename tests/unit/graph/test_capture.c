/* SPDX-License-Identifier: Apache-2.0 */
/* Captures: who belongs to one, what its work depends on, and how it goes wrong. */
#include "capture.h"
#include "fake_owner.h"
#include "unit.h"

static struct capture_stream one, two, legacy;
static struct capture_event event;

#define HANDLE(stream) ((CUstream) & (stream))

static int set_up(void **state)
{
    one = two = (struct capture_stream){.context = FAKE_CONTEXT, .is_blocking = true};
    legacy = (struct capture_stream){.context = FAKE_CONTEXT, .is_legacy = true};
    event = (struct capture_event){0};
    return 0;
}

static void begin(struct capture_stream *stream)
{
    assert_int_equal(graph_cuStreamBeginCapture_v2((CUstream)stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
                     0);
    assert_true(capture_is_on(stream));
}

static CUresult fill(struct capture_stream *stream)
{
    const CUDA_MEMSET_NODE_PARAMS params = {.elementSize = 4, .width = 1, .height = 1};

    return capture_fill_locked(stream, &params);
}

static void expect_end(struct capture_stream *stream, CUresult expected)
{
    CUgraph graph = NULL;

    assert_int_equal(graph_cuStreamEndCapture((CUstream)stream, &graph), expected);
    assert_false(capture_is_on(stream));
    assert_int_equal(graph == NULL, expected != 0);
    if (graph)
        assert_int_equal(graph_cuGraphDestroy(graph), 0);
    capture_event_forget_locked(&event);
}

static void work_follows_work(void **state)
{
    size_t edges = 0, nodes = 0;
    CUstreamCaptureStatus status;
    CUgraph graph;

    begin(&one);
    assert_int_equal(fill(&one), 0);
    assert_int_equal(fill(&one), 0);
    assert_int_equal(
        graph_cuStreamGetCaptureInfo_v2(HANDLE(one), &status, NULL, &graph, NULL, NULL), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuStreamEndCapture(HANDLE(one), &graph), 0);
    assert_int_equal(graph_cuGraphGetNodes(graph, NULL, &nodes), 0);
    assert_int_equal(graph_cuGraphGetEdges(graph, NULL, NULL, &edges), 0);
    assert_int_equal(nodes, 2);
    assert_int_equal(edges, 1);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

static void streams_join_by_events(void **state)
{
    begin(&one);
    assert_int_equal(fill(&one), 0);
    assert_int_equal(capture_record_locked(&one, &event, NULL, 0), 0);
    assert_int_equal(capture_wait_locked(&two, &event, NULL, 0, false), 0);
    assert_true(capture_is_on(&two));
    assert_int_equal(fill(&two), 0);
    assert_int_equal(capture_record_locked(&two, &event, NULL, 0), 0);
    assert_int_equal(capture_wait_locked(&one, &event, NULL, 0, false), 0);
    assert_int_equal(one.tails.count, 2);
    expect_end(&one, 0);
    assert_false(capture_is_on(&two));
}

static void a_stream_that_is_not_joined_is_an_error(void **state)
{
    begin(&one);
    assert_int_equal(capture_record_locked(&one, &event, NULL, 0), 0);
    assert_int_equal(capture_wait_locked(&two, &event, NULL, 0, false), 0);
    assert_int_equal(fill(&two), 0);
    expect_end(&one, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    assert_false(capture_is_on(&two));
}

static void captures_stay_apart(void **state)
{
    CUgraph graph;

    begin(&one);
    begin(&two);
    assert_int_equal(capture_record_locked(&two, &event, NULL, 0), 0);
    assert_int_equal(capture_wait_locked(&one, &event, NULL, 0, false),
                     CUDA_ERROR_STREAM_CAPTURE_MERGE);
    expect_end(&two, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    expect_end(&one, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(graph_cuStreamEndCapture(HANDLE(one), &graph), CUDA_ERROR_ILLEGAL_STATE);
}

static void events_from_outside_stay_outside(void **state)
{
    begin(&one);
    assert_int_equal(capture_wait_locked(&one, &event, NULL, 0, false), 0); /* never recorded */
    assert_int_equal(capture_wait_locked(&one, &event, NULL, 0, true),
                     CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    assert_int_equal(fill(&one), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    expect_end(&one, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void events_of_a_past_capture_are_useless(void **state)
{
    CUgraph graph;

    begin(&one);
    assert_int_equal(capture_record_locked(&one, &event, NULL, 0), 0);
    assert_int_equal(capture_refuse_event_locked(&event), CUDA_ERROR_CAPTURED_EVENT);
    assert_int_equal(graph_cuStreamEndCapture(HANDLE(one), &graph),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(capture_wait_locked(&two, &event, NULL, 0, false), CUDA_ERROR_CAPTURED_EVENT);
    assert_false(capture_is_on(&two));
    capture_event_forget_locked(&event);
}

static void the_legacy_stream_is_told(void **state)
{
    CUstreamCaptureStatus status;

    assert_int_equal(graph_cuStreamBeginCapture(HANDLE(legacy)),
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    begin(&one);
    assert_int_equal(graph_cuStreamIsCapturing(HANDLE(legacy), &status),
                     CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_int_equal(graph_cuStreamIsCapturing(HANDLE(one), &status), 0);
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_int_equal(capture_legacy_locked(FAKE_CONTEXT), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    expect_end(&one, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(capture_legacy_locked(FAKE_CONTEXT), 0);
}

static void modes_decide_what_is_unsafe(void **state)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    begin(&one);
    assert_int_equal(graph_cuThreadExchangeStreamCaptureMode(&mode), 0);
    assert_int_equal(capture_unsafe_locked(), 0);
    assert_int_equal(graph_cuThreadExchangeStreamCaptureMode(&mode), 0);
    assert_int_equal(capture_unsafe_locked(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    expect_end(&one, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(capture_unsafe_locked(), 0);
}

static void let_two_join(void)
{
    assert_int_equal(capture_record_locked(&one, &event, NULL, 0), 0);
    assert_int_equal(capture_wait_locked(&two, &event, NULL, 0, false), 0);
}

static void a_stream_that_goes_ends_the_capture_that_it_began(void **state)
{
    begin(&one);
    let_two_join();
    capture_stream_gone_locked(&one);
    assert_false(capture_is_on(&one));
    assert_false(capture_is_on(&two));
}

static void a_stream_that_joined_may_go(void **state)
{
    begin(&one);
    let_two_join();
    capture_stream_gone_locked(&two);
    assert_false(capture_is_on(&two));
    expect_end(&one, 0);
}

static void work_of_a_stream_that_went_must_be_joined(void **state)
{
    begin(&one);
    let_two_join();
    assert_int_equal(fill(&two), 0);
    capture_stream_gone_locked(&two);
    expect_end(&one, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

/* The nodes of a graph that is captured into may go; the tails that named them do no harm. */
static void nodes_go_while_capturing(void **state)
{
    CUgraph graph = new_graph(), told;
    CUstreamCaptureStatus status;
    const CUgraphNode *tails;
    size_t count;

    assert_int_equal(graph_cuStreamBeginCaptureToGraph(HANDLE(one), graph, NULL, NULL, 0,
                                                       CU_STREAM_CAPTURE_MODE_GLOBAL),
                     0);
    assert_int_equal(fill(&one), 0);
    assert_int_equal(
        graph_cuStreamGetCaptureInfo_v2(HANDLE(one), &status, NULL, &told, &tails, &count), 0);
    assert_ptr_equal(told, graph);
    assert_int_equal(count, 1);
    assert_int_equal(graph_cuGraphDestroyNode(tails[0]), 0);
    assert_int_equal(fill(&one), 0);
    expect_end(&one, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(work_follows_work, set_up),
        cmocka_unit_test_setup(streams_join_by_events, set_up),
        cmocka_unit_test_setup(a_stream_that_is_not_joined_is_an_error, set_up),
        cmocka_unit_test_setup(captures_stay_apart, set_up),
        cmocka_unit_test_setup(events_from_outside_stay_outside, set_up),
        cmocka_unit_test_setup(events_of_a_past_capture_are_useless, set_up),
        cmocka_unit_test_setup(the_legacy_stream_is_told, set_up),
        cmocka_unit_test_setup(modes_decide_what_is_unsafe, set_up),
        cmocka_unit_test_setup(a_stream_that_goes_ends_the_capture_that_it_began, set_up),
        cmocka_unit_test_setup(a_stream_that_joined_may_go, set_up),
        cmocka_unit_test_setup(work_of_a_stream_that_went_must_be_joined, set_up),
        cmocka_unit_test_setup(nodes_go_while_capturing, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
