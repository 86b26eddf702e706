/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of launches that come again: which of them keep a graph, and for how long launches are
 * gathered for one.
 */
#include "clock.h"
#include "launch_record.h"
#include "launch_scene.h"
#include "sm_share.h"
#include "stream_state.h"

/* ---- sequences that come again ---- */

/* Launches of the functions that `digits` names, with parameters first, first + 1 and so on. */
static const char *run_sequence(struct scene *scene, const char *digits, uint64_t first)
{
    for (unsigned i = 0; digits[i]; i++)
        assert_int_equal(launch(scene, (unsigned)(digits[i] - '1'), 0, first + i), CUDA_SUCCESS);
    launch_batch_flush(scene->fixture->session);
    return fake_trace();
}

/* The first two have graphs of their own then, x2 and x3, and x1 is the one for any others. */
static void keep_two_sequences(struct scene *scene)
{
    want(scene, 4);
    run(scene, 4, 0);
    for (unsigned i = 0; i < 3; i++) {
        run_sequence(scene, "1122", 10);
        run_sequence(scene, "2211", 10);
        run_sequence(scene, "1212", 10);
    }
}

static void a_repeated_sequence_keeps_its_graph(void **state)
{
    struct scene *scene = *state;

    keep_two_sequences(scene);
    assert_string_equal(run_sequence(scene, "1122", 10), "graph s1 x2; ");
    assert_string_equal(run_sequence(scene, "2211", 10), "graph s1 x3; ");
    assert_string_equal(run_sequence(scene, "1122", 11),
                        "set x2 f1 11; set x2 f1 12; set x2 f2 13; set x2 f2 14; graph s1 x2; ");
    assert_string_equal(run_sequence(scene, "1111", 20), "set x1 f1 20; set x1 f1 21; "
                                                         "set x1 f1 22; set x1 f1 23; "
                                                         "graph s1 x1; ");
    assert_int_equal(scene->fixture->session->launch->kept_count, 2);
}

/* Rows have other lengths than 16, 8 and 4, too. */
static void a_repeated_row_of_any_length_keeps_its_graph(void **state)
{
    struct scene *scene = *state;

    for (unsigned i = 0; i < 2; i++) {
        assert_null(strstr(run_sequence(scene, "121", 10), "graph"));
        assert_null(strstr(run_sequence(scene, "12", 10), "graph"));
    }
    assert_non_null(strstr(run_sequence(scene, "121", 10), "instantiate x1; graph s1 x1; "));
    assert_non_null(strstr(run_sequence(scene, "12", 10), "instantiate x2; graph s1 x2; "));
    assert_string_equal(run_sequence(scene, "121", 10), "graph s1 x1; ");
    assert_string_equal(run_sequence(scene, "12", 9), "set x2 f1 9; set x2 f2 10; graph s1 x2; ");
}

/* As if two keys were the same, though the sequences are not. */
static void a_key_of_another_length_launches_nothing_else(void **state)
{
    struct scene *scene = *state;
    struct kept_batch *kept = scene->stream[0]->launch->graph_batches.kept.kept;

    for (unsigned i = 0; i < 3; i++) {
        run_sequence(scene, "121", 10);
        run_sequence(scene, "12", 10);
    }
    uint64_t key = kept[0].key;
    kept[0].key = kept[1].key;
    kept[1].key = key;
    assert_string_equal(run_sequence(scene, "12", 10), "launch s1 f1 0 8; launch s1 f2 0 8; ");
    assert_int_equal(launch_count(scene->fixture->session), 3 * 5 + 2);
}

static void kept_graphs_go_with_the_module(void **state)
{
    struct scene *scene = *state;
    struct graph_batches *batches = &scene->stream[0]->launch->graph_batches;

    keep_two_sequences(scene);
    graph_batches_forget_module(batches, &scene->module);
    assert_string_equal(fake_trace(), "destroy x1; destroy graph; destroy x2; destroy graph; "
                                      "destroy x3; destroy graph; ");
    assert_int_equal(scene->fixture->session->launch->kept_count, 0);
}

static void a_session_keeps_so_many_graphs(void **state)
{
    struct scene *scene = *state;
    unsigned *count = &scene->fixture->session->launch->kept_count;

    *count = GRAPH_BATCHES_KEPT_MAX;
    keep_two_sequences(scene);
    assert_non_null(strstr(run_sequence(scene, "1122", 10), "set x1 "));
    *count = 0;
    assert_non_null(strstr(run_sequence(scene, "2211", 10), "instantiate x2; "));
}

static void graphs_are_kept_only_when_switched_on(void **state)
{
    struct scene *scene = *state;

    assert_false(launch_batches_are_kept(&scene->fixture->server));
    keep_two_sequences(scene);
    assert_non_null(strstr(run_sequence(scene, "1122", 10), "set x1 "));
}

/* A sequence that has not come for long makes room for another one. */
static void unused_sequences_are_forgotten(void **state)
{
    struct kept_batches kept = {0};

    for (uint64_t key = 1; key <= KEPT_BATCHES_MAX; key++)
        assert_null(kept_batches_want(&kept, key));
    assert_null(kept_batches_want(&kept, 1));
    assert_null(kept_batches_want(&kept, 1000)); /* in place of 2 */
    assert_null(kept_batches_want(&kept, 2));
    assert_null(kept_batches_want(&kept, 2));
    assert_non_null(kept_batches_want(&kept, 2));
    assert_non_null(kept_batches_want(&kept, 1));
    assert_null(kept_batches_find(&kept, 1));
    assert_false(kept_batches_drop_unused(&kept));
}

/* There may be too little memory for one now, and more later. */
static void a_graph_that_cannot_be_kept_is_tried_again(void **state)
{
    struct scene *scene = *state;

    run_sequence(scene, "121", 10);
    run_sequence(scene, "121", 10);
    fake.refusal = CUDA_ERROR_OUT_OF_MEMORY;
    assert_string_equal(run_sequence(scene, "121", 10),
                        "graph; launch s1 f1 0 8; launch s1 f2 0 8; launch s1 f1 0 8; ");
    assert_null(strstr(run_sequence(scene, "121", 10), "graph"));
    run_sequence(scene, "121", 10);
    assert_non_null(strstr(run_sequence(scene, "121", 10), "instantiate x1; graph s1 x1; "));
}

/* One of 32 sequences of five launches. */
static const char *run_number(struct scene *scene, unsigned number)
{
    char digits[6] = "";

    for (unsigned i = 0; i < 5; i++)
        digits[i] = number >> i & 1 ? '2' : '1';
    return run_sequence(scene, digits, 10);
}

/* A program may go on to something else. */
static void new_sequences_take_the_place_of_unused_ones(void **state)
{
    struct scene *scene = *state;

    for (unsigned i = 0; i < 3 * KEPT_BATCHES_MAX; i++)
        run_number(scene, i / 3);
    assert_int_equal(scene->fixture->session->launch->kept_count, KEPT_BATCHES_MAX);
    for (unsigned i = 0; i < 2000; i++)
        run_number(scene, KEPT_BATCHES_MAX);
    assert_string_equal(run_number(scene, KEPT_BATCHES_MAX), "graph s1 x26; ");
    assert_int_equal(scene->fixture->session->launch->kept_count, KEPT_BATCHES_MAX);
}

/* ---- launches in a row ---- */

#define PAUSE_NS (300 * NS_PER_US)

/* The session of a program that makes `count` launches between its waits, served by the pool. */
static struct session *serve_rows_of(struct scene *scene, unsigned count)
{
    struct session *session = scene->fixture->session;

    session->pooled = true;
    run(scene, count, 0);
    return session;
}

static void launches_in_a_row_are_gathered(void **state)
{
    struct scene *scene = *state;
    struct session *session = serve_rows_of(scene, 40);

    assert_false(launch_batch_gathers(session, 1));
    launch(scene, 0, 0, 1);
    assert_true(launch_batch_gathers(session, 1));
    assert_true(launch_batch_gathers(session, PAUSE_NS));
    launch(scene, 0, 0, 2);
    assert_true(launch_batch_gathers(session, PAUSE_NS + 1));
    assert_true(launch_batch_gathers(session, 2 * PAUSE_NS));
    assert_false(launch_batch_gathers(session, 2 * PAUSE_NS + 1));
    while (session->launch->batch.count < session->launch->batch.most)
        launch(scene, 0, 0, 3);
    assert_false(launch_batch_gathers(session, PAUSE_NS));
    session->launch->batch.count = 0;
}

/* The GPU might wait for all of them. */
static void launches_that_come_slowly_are_not_held_for_long(void **state)
{
    struct scene *scene = *state;
    struct session *session = serve_rows_of(scene, 40);
    unsigned held = 0;

    scene->stream[0]->flow.control.batch = GRAPH_BATCH_MAX;
    do
        launch(scene, 0, 0, 1);
    while (launch_batch_gathers(session, 1 + held++ * (PAUSE_NS - 1)));
    assert_int_equal(held, 5);
    launch_batch_submit(session);
    launch(scene, 0, 0, 1);
    assert_true(launch_batch_gathers(session, NS_PER_SEC));
    launch_batch_flush(session);
}

/* After a pause, too. */
static void graphs_begin_at_the_same_launches(void **state)
{
    struct scene *scene = *state;
    struct session *session = serve_rows_of(scene, 40);
    struct launch_batch *batch = &session->launch->batch;

    scene->stream[0]->flow.control.batch = GRAPH_BATCH_MAX;
    for (unsigned i = 0; i < 5; i++)
        launch(scene, 0, 0, i);
    launch_batch_submit(session);
    launch(scene, 0, 0, 5);
    assert_int_equal(batch->most, GRAPH_BATCH_MAX - 5);
    for (unsigned i = 6; i < 17; i++)
        launch(scene, 0, 0, i);
    assert_int_equal(batch->count, 1);
    assert_int_equal(batch->most, GRAPH_BATCH_MAX);
    launch_batch_flush(session);
    launch(scene, 0, 0, 0);
    assert_int_equal(batch->most, GRAPH_BATCH_MAX);
    launch_batch_flush(session);
}

static void without_kept_graphs_nothing_is_gathered_or_cut(void **state)
{
    struct scene *scene = *state;
    struct session *session = serve_rows_of(scene, 40);

    scene->stream[0]->flow.control.batch = GRAPH_BATCH_MAX;
    launch(scene, 0, 0, 0);
    assert_false(launch_batch_gathers(session, 1));
    launch_batch_submit(session);
    launch(scene, 0, 0, 1);
    assert_int_equal(session->launch->batch.most, GRAPH_BATCH_MAX);
    launch_batch_flush(session);
}

/* Its kernels may run while it computes. */
static void few_launches_in_a_row_are_not_gathered(void **state)
{
    struct scene *scene = *state;
    struct session *session = serve_rows_of(scene, 40);

    for (unsigned i = 0; i < 16; i++)
        run(scene, 2, 0);
    launch(scene, 0, 0, 1);
    assert_false(launch_batch_gathers(session, 1));
    launch_batch_flush(session);
}

/* It may wait for a word that the kernel writes. */
static void a_program_that_pauses_after_each_launch_is_not_gathered(void **state)
{
    struct scene *scene = *state;
    struct session *session = serve_rows_of(scene, 1000);
    unsigned pauses = 0;

    for (uint64_t now = 1;; now += PAUSE_NS) {
        launch(scene, 0, 0, 1);
        if (!launch_batch_gathers(session, now))
            break;
        launch_batch_submit(session);
        pauses++;
    }
    assert_in_range(pauses, 1, 10);
    launch_batch_flush(session);
}

static void shares_gather_nothing(void **state)
{
    struct scene *scene = *state;
    struct session *session = serve_rows_of(scene, 40);
    struct partition partition;
    struct sm_share *share = scene->stream[0]->sm_share, part = *share;

    part.partition = &partition;
    scene->stream[0]->sm_share = &part;
    launch(scene, 0, 0, 1);
    assert_false(launch_batch_gathers(session, 1));
    launch_batch_flush(session);
    scene->stream[0]->sm_share = share;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KEPT(a_repeated_sequence_keeps_its_graph),
        KEPT(a_repeated_row_of_any_length_keeps_its_graph),
        KEPT(a_key_of_another_length_launches_nothing_else),
        KEPT(kept_graphs_go_with_the_module),
        KEPT(a_session_keeps_so_many_graphs),
        CASE(graphs_are_kept_only_when_switched_on),
        KEPT(a_graph_that_cannot_be_kept_is_tried_again),
        KEPT(new_sequences_take_the_place_of_unused_ones),
        cmocka_unit_test(unused_sequences_are_forgotten),
        KEPT(launches_in_a_row_are_gathered),
        KEPT(launches_that_come_slowly_are_not_held_for_long),
        KEPT(graphs_begin_at_the_same_launches),
        CASE(without_kept_graphs_nothing_is_gathered_or_cut),
        KEPT(few_launches_in_a_row_are_not_gathered),
        KEPT(a_program_that_pauses_after_each_launch_is_not_gathered),
        KEPT(shares_gather_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
