/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches that wait together: which of them become graphs, and that their order stays.
 */
#include "batch_pause.h"
#include "capacity.h"
#include "clock.h"
#include "fence_counter.h"
#include "fence_kernel.h"
#include "launch_record.h"
#include "launch_scene.h"
#include "sm_share.h"
#include "stream_state.h"

static void one_goes_alone(void **state)
{
    struct scene *scene = *state;

    assert_int_equal(launch(scene, 0, 0, 7), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "");
    assert_true(launch_batch_flush(scene->fixture->session));
    assert_string_equal(fake_trace(), "launch s1 f1 0 8; ");
    assert_false(launch_batch_flush(scene->fixture->session));
    assert_int_equal(launch_count(scene->fixture->session), 1);
    assert_int_equal(launch_lone_count(scene->fixture->session), 1);
    run(scene, 2, 8);
    assert_int_equal(launch_lone_count(scene->fixture->session), 1);
    assert_string_equal(scene->fixture->session->launch->last_kernel, "one");
}

static void a_graph_is_made_at_the_third_time(void **state)
{
    const char *alone = "launch s1 f1 0 8; launch s1 f1 0 8; launch s1 f1 0 8; launch s1 f1 0 8; ";

    assert_string_equal(run(*state, 4, 0), alone);
    assert_string_equal(run(*state, 4, 0), alone);
    assert_string_equal(run(*state, 4, 10),
                        "graph; node f1 10; node f1 11; node f1 12; node f1 13; "
                        "instantiate x1; graph s1 x1; ");
}

static void two_get_a_graph_when_they_come_often(void **state)
{
    for (unsigned i = 0; i < 15; i++)
        assert_string_equal(run(*state, 2, 0), "launch s1 f1 0 8; launch s1 f1 0 8; ");
    assert_string_equal(run(*state, 2, 0),
                        "graph; node f1 0; node f1 1; instantiate x1; graph s1 x1; ");
    assert_string_equal(run(*state, 3, 0), "graph s1 x1; launch s1 f1 0 8; ");
}

/* Their capacity is left for those of 16. */
static void short_ones_get_no_graph_where_capacity_is_low(void **state)
{
    struct scene *scene = *state;

    while (!capacity_is_low(scene->module.device))
        assert_true(capacity_take(scene->module.device, CAPACITY_STREAM));
    want(scene, 8);
    assert_null(strstr(run(scene, 8, 0), "graph"));
    want(scene, 16);
    assert_non_null(strstr(run(scene, 16, 0), "instantiate x1; graph s1 x1; "));
}

static void later_only_parameters_are_set(void **state)
{
    want(*state, 4);
    run(*state, 4, 10);
    assert_string_equal(run(*state, 4, 20), "set x1 f1 20; set x1 f1 21; set x1 f1 22; "
                                            "set x1 f1 23; graph s1 x1; ");
    assert_string_equal(run(*state, 4, 20), "graph s1 x1; ");
    assert_string_equal(run(*state, 5, 19), "set x1 f1 19; set x1 f1 20; set x1 f1 21; "
                                            "set x1 f1 22; graph s1 x1; launch s1 f1 0 8; ");
}

static void kernels_without_parameters_go_together(void **state)
{
    struct scene *scene = *state;
    const struct wire_cuLaunchKernelEx in = {.f = 1, .shape = {1}, .params = ""};

    scene->function[0]->params_size = 0;
    for (unsigned i = 0; i < 16; i++) {
        serve_cuLaunchKernelEx(scene->fixture->session, &in, scene->function[0], scene->stream[0]);
        if (i % 4 == 3)
            launch_batch_flush(scene->fixture->session);
    }
    assert_non_null(strstr(fake_trace(), "instantiate x1; graph s1 x1; graph s1 x1; "));
}

static void the_longest_graph_comes_first(void **state)
{
    struct scene *scene = *state;

    want(scene, 4);
    run(scene, 4, 0);
    want(scene, 8);
    run(scene, 8, 0);
    want(scene, 16);
    run(scene, 16, 0);
    assert_string_equal(run(scene, 16, 0), "graph s1 x3; ");
    run(scene, 8, 0);
    assert_string_equal(run(scene, 13, 0), "graph s1 x2; set x1 f1 8; set x1 f1 9; set x1 f1 10; "
                                           "set x1 f1 11; graph s1 x1; launch s1 f1 0 8; ");
    assert_int_equal(launch_count(scene->fixture->session), 12 + 24 + 48 + 16 + 8 + 13);
}

static void more_than_a_batch_flushes_itself(void **state)
{
    struct scene *scene = *state;

    for (unsigned i = 0; i < 17; i++)
        launch(scene, 0, 0, i);
    assert_int_equal(launch_count(scene->fixture->session), 16);
    assert_int_equal(scene->fixture->session->launch->batch.count, 1);
    launch_batch_flush(scene->fixture->session);
    assert_int_equal(launch_count(scene->fixture->session), 17);
}

static void another_stream_comes_after(void **state)
{
    struct scene *scene = *state;

    launch(scene, 0, 0, 1);
    launch(scene, 1, 1, 2);
    assert_string_equal(fake_trace(), "launch s1 f1 0 8; ");
    launch_batch_flush(scene->fixture->session);
    assert_string_equal(fake_trace(), "launch s2 f2 0 8; ");
}

/* The driver gets nothing but the graph, and the client learns that output may come. */
static void kernels_that_may_print_go_together(void **state)
{
    struct scene *scene = *state;
    const struct region *region = scene->fixture->session->channel->region;

    want(scene, 4);
    run(scene, 4, 10);
    assert_false(region->output_pending);
    for (unsigned i = 0; i < 2; i++)
        scene->function[i]->uses = FUNCTION_MAY_PRINT;
    assert_string_equal(run(scene, 4, 10), "graph s1 x1; ");
    assert_true(region->output_pending);
}

static void launch_with_attribute(struct scene *scene, CUlaunchAttribute attribute)
{
    uint64_t parameter = 1;
    const struct wire_cuLaunchKernelEx in = {.f = 2,
                                             .shape = {1},
                                             .attributes = &attribute,
                                             .attributes_size = sizeof(attribute),
                                             .params = &parameter,
                                             .params_size = sizeof(parameter)};

    serve_cuLaunchKernelEx(scene->fixture->session, &in, scene->function[1], scene->stream[0]);
}

static void a_launch_with_attributes_comes_after(void **state)
{
    struct scene *scene = *state;

    launch(scene, 0, 0, 1);
    launch_with_attribute(
        scene, (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1});
    assert_string_equal(fake_trace(), "launch s1 f1 0 8; launch s1 f2 1 8; ");
}

static void a_refused_function_always_goes_alone(void **state)
{
    struct scene *scene = *state;

    want(scene, 4);
    run(scene, 4, 0);
    fake.refusal = CUDA_ERROR_INVALID_VALUE;
    assert_string_equal(run(scene, 4, 10), "set x1 f1 10; launch s1 f1 0 8; launch s1 f1 0 8; "
                                           "launch s1 f1 0 8; launch s1 f1 0 8; ");
    assert_true(scene->function[0]->not_batchable);
    assert_string_equal(run(scene, 4, 10), "launch s1 f1 0 8; launch s1 f1 0 8; "
                                           "launch s1 f1 0 8; launch s1 f1 0 8; ");
    for (unsigned i = 0; i < 4; i++)
        launch(scene, 1, 0, i);
    launch_batch_flush(scene->fixture->session);
    assert_string_equal(fake_trace(),
                        "set x1 f2 0; set x1 f2 1; set x1 f2 2; set x1 f2 3; graph s1 x1; ");
}

static void a_driver_that_refuses_graphs_is_not_asked_again(void **state)
{
    struct scene *scene = *state;

    want(scene, 4);
    fake.refusal = CUDA_ERROR_NOT_SUPPORTED;
    assert_string_equal(run(scene, 4, 0), "graph; launch s1 f1 0 8; launch s1 f1 0 8; "
                                          "launch s1 f1 0 8; launch s1 f1 0 8; ");
    assert_true(scene->stream[0]->launch->graph_batches.unavailable);
}

static void graphs_go_with_the_module(void **state)
{
    struct scene *scene = *state;
    const struct module other = {0};

    want(scene, 4);
    run(scene, 4, 0);
    graph_batches_forget_module(&scene->stream[0]->launch->graph_batches, &other);
    assert_string_equal(fake_trace(), "");
    graph_batches_forget_module(&scene->stream[0]->launch->graph_batches, &scene->module);
    assert_string_equal(fake_trace(), "destroy x1; destroy graph; ");
    assert_non_null(strstr(run(scene, 4, 0), "instantiate x2; "));
}

static void graphs_go_with_the_stream(void **state)
{
    struct scene *scene = *state;

    want(scene, 4);
    run(scene, 4, 0);
    list_remove(&scene->stream[0]->link);
    stream_close(scene->stream[0]);
    stream_destroy(scene->stream[0]);
    assert_string_equal(fake_trace(), "destroy x1; destroy graph; destroy s1; ");
}

static void a_failed_launch_is_reported(void **state)
{
    struct scene *scene = *state;

    launch(scene, 0, 0, 1);
    fake.refusal = CUDA_ERROR_INVALID_VALUE;
    launch_batch_flush(scene->fixture->session);
    assert_int_equal(scene->fixture->session->channel->region->deferred_error,
                     CUDA_ERROR_INVALID_VALUE);
}

static void a_share_of_the_device_has_no_graphs(void **state)
{
    struct scene *scene = *state;
    struct partition partition;
    struct sm_share *share = scene->stream[0]->sm_share, part = *share;

    part.partition = &partition;
    scene->stream[0]->sm_share = &part;
    want(scene, 4);
    assert_null(strstr(run(scene, 4, 0), "graph"));
    scene->stream[0]->sm_share = share;
}

static void graphs_pause(void **state)
{
    struct scene *scene = *state;
    const struct device *device = &scene->fixture->server.devices.device[0];

    want(scene, 4);
    run(scene, 4, 0);
    assert_false(batch_pause_begin(device));
    assert_true(batch_pause_begin(device));
    assert_null(strstr(run(scene, 4, 0), "graph"));
    batch_pause_end(device);
    assert_null(strstr(run(scene, 4, 0), "graph"));
    batch_pause_end(device);
    assert_true(batch_pause_is_on(device));
    atomic_store(&device->batch_pause->until, clock_ns());
    assert_string_equal(run(scene, 4, 0), "graph s1 x1; ");
    assert_false(batch_pause_is_on(device));
    assert_false(batch_pause_begin(device));
    batch_pause_end(device);
}

static void batches_can_be_switched_off(void **state)
{
    struct scene *scene = *state;

    scene->fixture->server.launch->no_batching = true;
    launch(scene, 0, 0, 1);
    assert_string_equal(fake_trace(), "launch s1 f1 0 8; ");
}

/* ---- a launch and its fence ---- */

#define FENCE_KERNEL 9

static void have_fence_kernel(struct scene *scene)
{
    struct device *device = &scene->fixture->server.devices.device[0];

    device->launch->fence_kernel = make_function(NULL, FENCE_KERNEL);
    device->launch->fence_kernel->known = NULL; /* of no client */
    device->record.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 8;
}

static void lose_fence_kernel(struct scene *scene)
{
    fence_kernel_unload(&scene->fixture->server.devices.device[0]);
}

static const char *launch_and_fence(struct scene *scene, uint32_t blocks, uint32_t seq)
{
    uint64_t parameter = 7;
    const struct wire_cuLaunchKernelEx in = {
        .f = 1, .shape = {blocks, 1, 1}, .params = &parameter, .params_size = sizeof(parameter)};
    const struct wire_fnFence fence = {.seq = seq};
    struct session *session = scene->fixture->session;

    assert_int_equal(serve_cuLaunchKernelEx(session, &in, scene->function[0], scene->stream[0]),
                     CUDA_SUCCESS);
    assert_int_equal(serve_fnFence(session, &fence, scene->stream[0]), CUDA_SUCCESS);
    assert_int_equal(session->launch->batch.count, 0);
    scene->stream[0]->launch->fence_path_probe.since =
        0; /* the time that it took is not measured */
    return fake_trace();
}

static void a_launch_and_its_fence_become_a_graph(void **state)
{
    struct scene *scene = *state;

    have_fence_kernel(scene);
    const char *apart = launch_and_fence(scene, 1, 1);
    assert_int_equal(launch_lone_count(scene->fixture->session), 0);
    assert_int_equal(launch_fence_count(scene->fixture->session), 1);
    assert_non_null(strstr(apart, "launch s1 f1 0 8; "));
    assert_null(strstr(apart, "graph"));
    launch_and_fence(scene, 1, 2);
    const char *together = launch_and_fence(scene, 1, 3);
    assert_non_null(strstr(together, "node f1 7; node f9 "));
    assert_non_null(strstr(together, "graph s1 x1; "));
    assert_null(strstr(together, "launch"));
    together = launch_and_fence(scene, 1, 4);
    assert_null(strstr(together, "set x1 f1"));
    assert_non_null(strstr(together, "set x1 f9 "));
    assert_int_equal(launch_count(scene->fixture->session), 4);
    assert_int_equal(scene->fixture->session->streams->in_flight[scene->stream[0]->word].promised,
                     4);
    lose_fence_kernel(scene);
}

static CUresult CUDAAPI give_memory(CUdeviceptr *ret_address, size_t size)
{
    *ret_address = 4096;
    return size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult CUDAAPI take_memory(CUdeviceptr address)
{
    return address == 4096 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void consecutive_fences_are_counted_by_the_kernel(void **state)
{
    struct scene *scene = *state;

    have_fence_kernel(scene);
    driver.cuMemAlloc_v2 = give_memory;
    driver.cuMemFree_v2 = take_memory;
    scene->fixture->server.devices.device[0].launch->fence_counters = fence_counters_create();
    for (uint32_t seq = 1; seq < 5;
         seq++) /* created at the third; from the fourth on it is told to count */
        launch_and_fence(scene, 1, seq);
    assert_string_equal(launch_and_fence(scene, 1, 5), "graph s1 x1; ");
    assert_string_equal(launch_and_fence(scene, 1, 6), "graph s1 x1; ");
    assert_non_null(strstr(launch_and_fence(scene, 1, 8), "set x1 f9 "));
    assert_non_null(strstr(launch_and_fence(scene, 1, 9), "set x1 f9 "));
    assert_string_equal(launch_and_fence(scene, 1, 10), "graph s1 x1; ");
    fence_counters_put_back(scene->fixture->server.devices.device[0].launch->fence_counters,
                            scene->stream[0]->launch->fence_counter);
    scene->stream[0]->launch->fence_counter = 0;
    lose_fence_kernel(scene);
}

static void a_launch_that_fills_the_device_has_a_separate_fence(void **state)
{
    struct scene *scene = *state;

    have_fence_kernel(scene);
    for (uint32_t seq = 1; seq < 5; seq++)
        assert_null(strstr(launch_and_fence(scene, 9, seq), "graph"));
    lose_fence_kernel(scene);
}

static struct session *watched;
static uint64_t least_lone;

static CUresult look_meanwhile(const CUlaunchConfig *config, CUfunction function, void **params,
                               void **extra)
{
    uint64_t lone = launch_lone_count(watched);

    least_lone = lone < least_lone ? lone : least_lone;
    return CUDA_SUCCESS;
}

/* The watchdog may look at any time. */
static void a_launch_with_a_fence_never_makes_lone_ones_fewer(void **state)
{
    struct scene *scene = *state;

    run(scene, 1, 0);
    watched = scene->fixture->session;
    least_lone = launch_lone_count(watched);
    driver.cuLaunchKernelEx = look_meanwhile;
    launch_and_fence(scene, 1, 1);
    assert_int_equal(least_lone, 1);
    assert_int_equal(launch_lone_count(watched), 1);
    assert_int_equal(launch_fence_count(watched), 1);
}

static void without_the_kernel_nothing_waits_for_a_fence(void **state)
{
    struct scene *scene = *state;

    for (uint32_t seq = 1; seq < 5; seq++)
        assert_null(strstr(launch_and_fence(scene, 1, seq), "graph"));
    launch(scene, 0, 0, 1);
    assert_false(launch_batch_awaits_fence(scene->fixture->session));
}

static void a_fence_is_awaited_after_fences_and_not_forever(void **state)
{
    struct scene *scene = *state;
    struct session *session = scene->fixture->session;

    have_fence_kernel(scene);
    launch_and_fence(scene, 1, 1);
    launch(scene, 0, 0, 1);
    assert_true(launch_batch_awaits_fence(session));
    while (launch_batch_awaits_fence(session))
        ;
    launch_batch_flush(session);
    launch(scene, 0, 0, 1);
    assert_false(launch_batch_awaits_fence(session));
    lose_fence_kernel(scene);
}

/* Long enough for it not to matter when this thread runs. */
#define HOUR (3600 * NS_PER_SEC)

/* The client waits, and its next launch measures how long that took. */
static void fence_passed_after(struct scene *scene, uint32_t seq, uint64_t ns)
{
    struct stream *stream = scene->stream[0];

    *window_fence(scene->fixture->session->window, stream->word) = seq;
    stream->launch->fence_path_probe.since = clock_ns() - ns;
}

static void the_faster_path_is_taken(void **state)
{
    struct scene *scene = *state;
    struct stream *stream = scene->stream[0];
    unsigned by_kernel = 0;

    have_fence_kernel(scene);
    for (uint32_t seq = 1; seq <= 128; seq++) {
        launch_and_fence(scene, 1, seq);
        by_kernel += stream->launch->fence_path_probe.path == FENCE_BY_KERNEL;
        fence_passed_after(scene, seq,
                           stream->launch->fence_path_probe.path == FENCE_BY_KERNEL ? 8 * HOUR
                                                                                    : 4 * HOUR);
    }
    assert_in_range(by_kernel, 3, 6);
    lose_fence_kernel(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(one_goes_alone),
        CASE(a_graph_is_made_at_the_third_time),
        CASE(two_get_a_graph_when_they_come_often),
        CASE(short_ones_get_no_graph_where_capacity_is_low),
        CASE(later_only_parameters_are_set),
        CASE(kernels_without_parameters_go_together),
        CASE(the_longest_graph_comes_first),
        CASE(more_than_a_batch_flushes_itself),
        CASE(another_stream_comes_after),
        CASE(kernels_that_may_print_go_together),
        CASE(a_launch_with_attributes_comes_after),
        CASE(a_refused_function_always_goes_alone),
        CASE(a_driver_that_refuses_graphs_is_not_asked_again),
        CASE(graphs_go_with_the_module),
        CASE(graphs_go_with_the_stream),
        CASE(a_failed_launch_is_reported),
        CASE(a_share_of_the_device_has_no_graphs),
        CASE(graphs_pause),
        CASE(batches_can_be_switched_off),
        CASE(a_launch_and_its_fence_become_a_graph),
        CASE(consecutive_fences_are_counted_by_the_kernel),
        CASE(a_launch_that_fills_the_device_has_a_separate_fence),
        CASE(a_launch_with_a_fence_never_makes_lone_ones_fewer),
        CASE(without_the_kernel_nothing_waits_for_a_fence),
        CASE(a_fence_is_awaited_after_fences_and_not_forever),
        CASE(the_faster_path_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
