/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of launches that a training repeats: which of them keep a graph, and for how long
 * launches are gathered for one.
 */
#include "capacity.h"
#include "clock.h"
#include "kept_batches.h"
#include "launch_record.h"
#include "launch_scene.h"
#include "stream_state.h"

static int setup_training(void **state)
{
    int error = setup(state);

    atomic_store(&((struct scene *)*state)->fixture->session->gathers, true);
    return error;
}

/* ---- sequences that come again ---- */

/* Launches of the functions that `digits` names, with parameters first, first + 1 and so on. */
static const char *run_sequence(struct scene *scene, const char *digits, uint64_t first)
{
    for (unsigned i = 0; digits[i]; i++)
        assert_int_equal(launch(scene, (unsigned)(digits[i] - '1'), 0, first + i), CUDA_SUCCESS);
    launch_batch_flush(scene->fixture->session);
    return fake_trace();
}

static void keep_two_sequences(struct scene *scene)
{
    for (unsigned i = 0; i < 3; i++) {
        run_sequence(scene, "121", 10);
        run_sequence(scene, "12", 10);
    }
}

static void a_repeated_sequence_keeps_its_graph(void **state)
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
    assert_string_equal(run_sequence(scene, "11", 9), "launch s1 f1 0 8; launch s1 f1 0 8; ");
}

static void other_programs_keep_none(void **state)
{
    struct scene *scene = *state;

    for (unsigned i = 0; i < 5; i++)
        assert_null(strstr(run_sequence(scene, "121", 10), "graph"));
}

static void one_launch_keeps_none(void **state)
{
    struct scene *scene = *state;

    for (unsigned i = 0; i < 8; i++)
        assert_string_equal(run_sequence(scene, "1", 10), "launch s1 f1 0 8; ");
}

static void a_refused_function_keeps_none(void **state)
{
    struct scene *scene = *state;

    scene->function[1]->not_batchable = true;
    for (unsigned i = 0; i < 8; i++)
        assert_null(strstr(run_sequence(scene, "121", 10), "graph"));
}

/* As if two keys were the same, though the sequences are not. */
static void a_key_of_another_length_launches_nothing_else(void **state)
{
    struct scene *scene = *state;

    keep_two_sequences(scene);
    struct kept_batch *kept = scene->stream[0]->launch->graph_batches.kept->kept;
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
    assert_string_equal(fake_trace(), "destroy x1; destroy graph; destroy x2; destroy graph; ");
    assert_null(strstr(run_sequence(scene, "12", 10), "graph"));
}

/* How many slots are left. They are all taken then. */
static unsigned take_capacity(struct scene *scene)
{
    unsigned count = 0;

    while (capacity_take(scene->stream[0]->device, 1))
        count++;
    return count;
}

/* Other clients get no graphs where kept ones have taken all. */
#define LEFT_TO_OTHERS 48u

static void kept_graphs_need_capacity_and_give_it_back(void **state)
{
    struct scene *scene = *state;
    const struct device *device = scene->stream[0]->device;

    unsigned before = take_capacity(scene);
    keep_two_sequences(scene);
    assert_null(strstr(run_sequence(scene, "12", 10), "graph"));
    for (unsigned i = 0; i < LEFT_TO_OTHERS - 1; i++)
        capacity_give(device, 1);
    assert_null(strstr(run_sequence(scene, "12", 10), "graph"));
    for (unsigned i = LEFT_TO_OTHERS - 1; i < before; i++)
        capacity_give(device, 1);
    assert_non_null(strstr(run_sequence(scene, "12", 10), "instantiate x1; graph s1 x1; "));
    assert_non_null(strstr(run_sequence(scene, "121", 10), "instantiate x2; graph s1 x2; "));
    graph_batches_fini(&scene->stream[0]->launch->graph_batches);
    assert_int_equal(take_capacity(scene), before);
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
    for (unsigned i = 0; i < 2000; i++)
        run_number(scene, KEPT_BATCHES_MAX);
    assert_null(strstr(run_number(scene, KEPT_BATCHES_MAX), "set"));
}

/* ---- launches that are gathered ---- */

#define PAUSE_NS (300 * NS_PER_US)

static void launches_are_gathered(void **state)
{
    struct scene *scene = *state;
    struct session *session = scene->fixture->session;

    scene->stream[0]->flow.control.batch = GRAPH_BATCH_MAX;
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
    launch_batch_flush(session);
}

/* The GPU might wait for all of them. */
static void launches_that_come_slowly_are_not_held_for_long(void **state)
{
    struct scene *scene = *state;
    struct session *session = scene->fixture->session;
    unsigned held = 0;

    scene->stream[0]->flow.control.batch = GRAPH_BATCH_MAX;
    do
        launch(scene, 0, 0, 1);
    while (launch_batch_gathers(session, 1 + held++ * (PAUSE_NS - 1)));
    assert_int_equal(held, 5);
    launch_batch_flush(session);
    launch(scene, 0, 0, 1);
    assert_true(launch_batch_gathers(session, NS_PER_SEC));
    launch_batch_flush(session);
}

/* By that the server knows a training. */
static void gathered_launches_count_as_those_that_came_alone(void **state)
{
    struct scene *scene = *state;
    struct session *session = scene->fixture->session;

    launch(scene, 0, 0, 1);
    launch_batch_gathers(session, 1);
    launch(scene, 0, 0, 1);
    launch_batch_gathers(session, 2);
    launch(scene, 0, 0, 1);
    launch(scene, 0, 0, 1);
    launch_batch_gathers(session, 3);
    launch_batch_flush(session);
    assert_int_equal(launch_lone_count(session), 2);
    launch(scene, 0, 0, 1);
    launch_batch_gathers(session, 4);
    launch_batch_flush(session);
    assert_int_equal(launch_lone_count(session), 3);
    run(scene, 1, 0);
    assert_int_equal(launch_lone_count(session), 4);
}

static void other_programs_gather_nothing(void **state)
{
    struct scene *scene = *state;

    launch(scene, 0, 0, 1);
    assert_false(launch_batch_gathers(scene->fixture->session, 1));
    launch_batch_flush(scene->fixture->session);
}

#define TRAINING(name) cmocka_unit_test_setup_teardown(name, setup_training, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRAINING(a_repeated_sequence_keeps_its_graph),
        CASE(other_programs_keep_none),
        TRAINING(one_launch_keeps_none),
        TRAINING(a_refused_function_keeps_none),
        TRAINING(a_key_of_another_length_launches_nothing_else),
        TRAINING(kept_graphs_go_with_the_module),
        TRAINING(kept_graphs_need_capacity_and_give_it_back),
        cmocka_unit_test(unused_sequences_are_forgotten),
        TRAINING(a_graph_that_cannot_be_kept_is_tried_again),
        TRAINING(new_sequences_take_the_place_of_unused_ones),
        TRAINING(launches_are_gathered),
        TRAINING(launches_that_come_slowly_are_not_held_for_long),
        TRAINING(gathered_launches_count_as_those_that_came_alone),
        CASE(other_programs_gather_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
