/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the description of a graph becomes: a graph of the driver, or for a confined client its
 * nodes one by one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_pause.h"
#include "cuda_graph.h"
#include "fake_driver.h"
#include "function.h"
#include "graph_ending.h"
#include "graph_state.h"
#include "launch_record.h"
#include "launch_state.h"
#include "memory.h"
#include "module_state.h"
#include "sm_share.h"

/* A graph of three nodes: a kernel, behind it a copy, behind both a memset. */
struct made {
    struct module module;
    struct function *function;
    struct stream *stream;
    struct graph *graph;
};

static uint64_t own_memory(struct fixture *fixture)
{
    const struct granule granule = {
        .kind = GRANULE_DEVICE, .address = WINDOW_FIRST, .size = 1u << 20, .fd = -1};

    if (!memory_covers(fixture->session, WINDOW_FIRST, 1))
        assert_int_equal(memory_allow(fixture->session, &granule), CUDA_SUCCESS);
    return WINDOW_FIRST;
}

static void describe_kernel(struct fixture *fixture, struct made *made, uint32_t value)
{
    const uint32_t params[4] = {value};
    const struct wire_fnGraphKernelNode in = {
        .shape = {1}, .params = params, .params_size = sizeof(params)};

    assert_int_equal(serve_fnGraphKernelNode(fixture->session, &in, made->graph, made->function),
                     CUDA_SUCCESS);
}

static CUresult describe_copy(struct fixture *fixture, struct made *made, uint64_t dst,
                              uint64_t width)
{
    const struct wire_fnGraphCopyNode in = {.node = 1,
                                            .dst = dst,
                                            .src = own_memory(fixture) + 4096,
                                            .width = width,
                                            .height = 1,
                                            .depth = 1};

    return serve_fnGraphCopyNode(fixture->session, &in, made->graph);
}

static void describe_memset(struct fixture *fixture, struct made *made)
{
    const struct wire_fnGraphMemsetNode in = {
        .node = 2, .dst = own_memory(fixture), .element_size = 4, .width = 9, .height = 1};

    assert_int_equal(serve_fnGraphMemsetNode(fixture->session, &in, made->graph), CUDA_SUCCESS);
}

static CUresult instantiate(struct fixture *fixture, struct made *made, uint32_t flags)
{
    const struct wire_cuGraphInstantiateWithFlags in = {.flags = flags};

    return serve_cuGraphInstantiateWithFlags(fixture->session, &in, made->graph);
}

static void launch(struct fixture *fixture, struct made *made)
{
    const struct wire_cuGraphLaunch in = {0};

    assert_int_equal(serve_cuGraphLaunch(fixture->session, &in, made->graph, made->stream),
                     CUDA_SUCCESS);
}

static struct made make(struct fixture *fixture)
{
    static struct known_kernel known;
    static const uint32_t edges[] = {0, 1, 0, 2, 1, 2};
    const struct wire_fnGraphCreate create = {.graph = fixture_handle(WIRE_GRAPH, 5), .nodes = 3};
    const struct wire_fnGraphEdges in = {.edges = edges, .edges_size = sizeof(edges)};
    struct made made = {.stream = fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING)};

    made.function = calloc(1, sizeof(*made.function) + 8);
    made.function->known = &known;
    made.function->driver = (CUfunction)5;
    made.function->handle = 7;
    made.function->params_size = 16;
    strcpy(made.function->name, "kernel");
    assert_int_equal(serve_fnGraphCreate(fixture->session, &create), CUDA_SUCCESS);
    made.graph = session_lookup(fixture->session, WIRE_GRAPH, create.graph);
    assert_int_equal(serve_fnGraphEdges(fixture->session, &in, made.graph), CUDA_SUCCESS);
    return made;
}

static void describe(struct fixture *fixture, struct made *made)
{
    made->function->module = &made->module;
    made->module.device = &fixture->server.devices.device[0];
    describe_kernel(fixture, made, 11);
    assert_int_equal(describe_copy(fixture, made, own_memory(fixture), 64), CUDA_SUCCESS);
    describe_memset(fixture, made);
    fake_trace();
}

static void end(struct fixture *fixture, struct made *made)
{
    const struct wire_cuGraphExecDestroy in = {.graph = fixture_handle(WIRE_GRAPH, 5)};

    serve_cuGraphExecDestroy(fixture->session, &in, made->graph);
    assert_int_equal(quota_held(fixture->session, QUOTA_GRAPH_MEMORY), 0);
    free(made->function);
    memory_release_all(fixture->session);
    fake_trace();
}

static void a_graph_of_the_driver(void **state)
{
    struct fixture *fixture = *state;
    struct made made = make(fixture);

    describe(fixture, &made);
    assert_int_equal(instantiate(fixture, &made, 0), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "graph; node f5 11; copy node 64 behind 1; "
                                      "fill node 9 behind 2; instantiate x1; ");
    launch(fixture, &made);
    assert_string_equal(fake_trace(), "graph s1 x1; ");
    assert_string_equal(fixture->session->launch->last_kernel, "kernel");
    assert_int_equal(launch_count(fixture->session), 1);
    end(fixture, &made);
}

static void nodes_change(void **state)
{
    const struct wire_cuGraphNodeSetEnabled disable = {.node = 2};
    struct fixture *fixture = *state;
    struct made made = make(fixture);

    describe(fixture, &made);
    instantiate(fixture, &made, 0);
    fake_trace();
    describe_kernel(fixture, &made, 12);
    assert_string_equal(fake_trace(), "set x1 f5 12; ");
    assert_int_equal(describe_copy(fixture, &made, own_memory(fixture), 32), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "set x1 n2 32; ");
    assert_int_equal(serve_cuGraphNodeSetEnabled(fixture->session, &disable, made.graph), 0);
    assert_string_equal(fake_trace(), "enable x1 n3 0; ");
    end(fixture, &made);
}

/* A copy may be between other kinds of memory now, which the driver does not take in place. */
static void a_node_that_is_not_set_is_built_anew(void **state)
{
    struct fixture *fixture = *state;
    struct made made = make(fixture);

    describe(fixture, &made);
    instantiate(fixture, &made, 0);
    fake_trace();
    fake.refusal = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(describe_copy(fixture, &made, own_memory(fixture), 32), CUDA_SUCCESS);
    assert_non_null(strstr(fake_trace(), "set x1 n2 32; "));
    launch(fixture, &made);
    assert_string_equal(fake_trace(), "graph; node f5 11; copy node 32 behind 1; "
                                      "fill node 9 behind 2; instantiate x2; graph s1 x2; ");
    end(fixture, &made);
}

/* Instantiation reports the first error, and nothing reaches the driver. */
static void errors_are_reported_by_instantiation(void **state)
{
    struct fixture *fixture = *state;
    struct made made = make(fixture);

    describe(fixture, &made);
    assert_int_equal(describe_copy(fixture, &made, 4096, 64), CUDA_SUCCESS);
    assert_int_equal(instantiate(fixture, &made, 0), CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(fake_trace(), "");
    end(fixture, &made);
}

/* Afterwards an error is that of the command. */
static void later_errors_are_reported_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct made made = make(fixture);

    describe(fixture, &made);
    instantiate(fixture, &made, 0);
    fake_trace();
    assert_int_equal(describe_copy(fixture, &made, 4096, 64), CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(fake_trace(), "");
    launch(fixture, &made);
    assert_string_equal(fake_trace(), "graph s1 x1; ");
    end(fixture, &made);
}

static void confined_clients_have_no_graphs(void **state)
{
    const struct wire_cuGraphNodeSetEnabled disable = {.node = 1};
    struct fixture *fixture = *state;
    struct made made = make(fixture);
    struct partition partition = {0};

    describe(fixture, &made);
    instantiate(fixture, &made, 0);
    made.stream->sm_share->partition = &partition;
    serve_cuGraphNodeSetEnabled(fixture->session, &disable, made.graph);
    fake_trace();
    launch(fixture, &made);
    assert_string_equal(fake_trace(), "launch s1 f5 0 16; fill s1 0 9; ");
    made.stream->sm_share->partition = NULL;
    end(fixture, &made);
}

static void priorities_follow_the_client(void **state)
{
    struct fixture *fixture = *state;
    struct made made = make(fixture);

    fake_gives_nodes_priorities();
    describe(fixture, &made);
    instantiate(fixture, &made, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
    assert_non_null(strstr(fake_trace(), "attribute 8 -1; "));
    fixture->session->limits.priority = 1;
    launch(fixture, &made);
    assert_non_null(strstr(fake_trace(), "attribute 8 0; "));
    launch(fixture, &made);
    assert_string_equal(fake_trace(), "graph s1 x2; ");
    fixture->session->limits.priority = 0;
    end(fixture, &made);
}

static void forget_module(struct session *session, const struct module *module)
{
    list_for_each (struct module_observer, observer, &session->server->modules->observers, link)
        observer->forget(session, module);
}

/* A graph of three nodes: a kernel, which gets `word` where the handle belongs, behind it a
 * conditional node, and inside of that a copy. */
static void describe_conditional(struct fixture *fixture, struct made *made, uint64_t word)
{
    static const uint32_t bodies[] = {0, 1}, edges[] = {0, 1};
    const uint64_t params[2] = {word};
    const struct wire_fnGraphCreate create = {.graph = fixture_handle(WIRE_GRAPH, 6), .nodes = 3};
    const struct wire_fnGraphKernelNode kernel = {
        .shape = {1}, .params = params, .params_size = sizeof(params)};
    const struct wire_fnGraphConditionalNode in = {.node = 1,
                                                   .condition = 0x74000000000001,
                                                   .default_value = 3,
                                                   .flags = 1,
                                                   .bodies = bodies,
                                                   .bodies_size = sizeof(bodies)};
    const struct wire_fnGraphCopyNode copy = {.node = 2,
                                              .dst = own_memory(fixture),
                                              .src = own_memory(fixture) + 4096,
                                              .width = 64,
                                              .height = 1,
                                              .depth = 1};
    const struct wire_fnGraphEdges order = {.edges = edges, .edges_size = sizeof(edges)};

    made->function->module = &made->module;
    made->module.device = &fixture->server.devices.device[0];
    assert_int_equal(serve_fnGraphCreate(fixture->session, &create), CUDA_SUCCESS);
    made->graph = session_lookup(fixture->session, WIRE_GRAPH, create.graph);
    serve_fnGraphKernelNode(fixture->session, &kernel, made->graph, made->function);
    serve_fnGraphConditionalNode(fixture->session, &in, made->graph);
    serve_fnGraphCopyNode(fixture->session, &copy, made->graph);
    serve_fnGraphEdges(fixture->session, &order, made->graph);
    fake_trace();
}

static void end_conditional(struct fixture *fixture, struct made *made)
{
    const struct wire_cuGraphExecDestroy in = {.graph = fixture_handle(WIRE_GRAPH, 6)};

    serve_cuGraphExecDestroy(fixture->session, &in, made->graph);
    graph_endings_finish(fixture->session);
    made->graph = session_lookup(fixture->session, WIRE_GRAPH, fixture_handle(WIRE_GRAPH, 5));
    end(fixture, made);
}

static bool runs;

static CUresult CUDAAPI query_event(CUevent event)
{
    assert_non_null(event);
    return runs ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* The kernel gets the driver's handle, again whenever the graph is built. No node is set in place
 * where there are such graphs: batch_pause.h. */
static void conditional_nodes_are_the_drivers(void **state)
{
    struct fixture *fixture = *state;
    struct made made = make(fixture);
    const uint64_t params[2] = {0x74000000000001};
    const struct wire_fnGraphKernelNode kernel = {
        .shape = {1}, .params = params, .params_size = sizeof(params)};

    driver.cuEventQuery = query_event;
    describe_conditional(fixture, &made, 0x74000000000001);
    assert_int_equal(instantiate(fixture, &made, 0), CUDA_SUCCESS);
    assert_string_equal(fake_trace(),
                        "event e1; graph; condition of graph 1 flags 1; node f5 4099; "
                        "conditional 0x1003 of 2 behind 1; "
                        "in 21: copy node 64 behind 0; instantiate x1; ");
    serve_fnGraphKernelNode(fixture->session, &kernel, made.graph, made.function);
    launch(fixture, &made);
    assert_non_null(strstr(fake_trace(), "node f5 4099; "));
    end_conditional(fixture, &made);
}

static void create_and_destroy_another(struct fixture *fixture)
{
    const struct wire_fnGraphCreate create = {.graph = fixture_handle(WIRE_GRAPH, 7), .nodes = 1};
    const struct wire_cuGraphExecDestroy in = {.graph = create.graph};

    assert_int_equal(serve_fnGraphCreate(fixture->session, &create), CUDA_SUCCESS);
    serve_cuGraphExecDestroy(fixture->session, &in,
                             session_lookup(fixture->session, WIRE_GRAPH, create.graph));
}

/* Its value could be another graph's while a launch still looks at it. */
static void conditional_nodes_stay_while_they_run(void **state)
{
    const struct wire_cuGraphExecDestroy in = {.graph = fixture_handle(WIRE_GRAPH, 6)};
    struct fixture *fixture = *state;
    struct made made = make(fixture);
    uint64_t held = quota_held(fixture->session, QUOTA_GRAPH_MEMORY);

    driver.cuEventQuery = query_event;
    describe_conditional(fixture, &made, 0x74000000000001);
    instantiate(fixture, &made, 0);
    fake_trace();
    launch(fixture, &made);
    assert_string_equal(fake_trace(), "event e2; graph s1 x1; record e2 s1; record e1 s1; ");
    /* Two of one context do not run side by side. */
    made.stream = fixture_stream(fixture, 2, CU_STREAM_NON_BLOCKING);
    fake_trace();
    launch(fixture, &made);
    assert_string_equal(fake_trace(), "wait s2 e2; graph s2 x1; record e2 s2; record e1 s2; ");
    runs = true;
    serve_cuGraphExecDestroy(fixture->session, &in, made.graph);
    create_and_destroy_another(fixture);
    assert_string_equal(fake_trace(), "");
    assert_true(quota_held(fixture->session, QUOTA_GRAPH_MEMORY) > held);
    assert_false(graph_endings_collect(fixture->session, true));
    assert_true(batch_pause_is_on(made.stream->device));
    runs = false;
    create_and_destroy_another(fixture);
    assert_string_equal(fake_trace(), "");
    assert_true(graph_endings_collect(fixture->session, true));
    assert_string_equal(fake_trace(), "destroy x1; destroy graph; ");
    assert_int_equal(quota_held(fixture->session, QUOTA_GRAPH_MEMORY), held);
    made.graph = session_lookup(fixture->session, WIRE_GRAPH, fixture_handle(WIRE_GRAPH, 5));
    end(fixture, &made);
}

/* To destroy one waits for all kernels of the context. */
static void conditional_nodes_end_together(void **state)
{
    const struct wire_fnGraphKernelNode kernel = {
        .shape = {1}, .params = (uint64_t[]){0x74000000000001, 0}, .params_size = 16};
    struct fixture *fixture = *state;
    struct made made = make(fixture);

    driver.cuEventQuery = query_event;
    describe_conditional(fixture, &made, 0x74000000000001);
    for (int i = 0; i < 16; i++) {
        instantiate(fixture, &made, 0);
        launch(fixture, &made);
        assert_null(strstr(fake_trace(), "destroy x"));
        serve_fnGraphKernelNode(fixture->session, &kernel, made.graph, made.function);
    }
    const char *trace = fake_trace();
    for (int i = 0; i < 16; i++) {
        trace = strstr(trace, "destroy x");
        assert_non_null(trace++);
    }
    end_conditional(fixture, &made);
}

static CUresult CUDAAPI add_dependencies(CUgraph graph, const CUgraphNode *from,
                                         const CUgraphNode *to, const CUgraphEdgeData *data,
                                         size_t count)
{
    assert_non_null(graph);
    assert_int_equal(count, 1);
    snprintf(fake.trace + strlen(fake.trace), 40, "edge of port %d type %d; ",
             data ? data->from_port : -1, data ? data->type : -1);
    return data && data->from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

/* A kernel that may begin when a port of the one in front says so; ordinary edges otherwise. */
static void kernels_begin_early(void **state)
{
    const struct wire_fnGraphCreate create = {.graph = fixture_handle(WIRE_GRAPH, 6), .nodes = 4};
    static const uint32_t edges[] = {0 | 0x11u << 24, 1, 1 | 2u << 24, 2, 2 | 0x11u << 24, 3};
    const struct wire_fnGraphEdges in = {.edges = edges, .edges_size = sizeof(edges)};
    const struct wire_fnGraphMemsetNode fill = {
        .node = 3, .dst = WINDOW_FIRST, .element_size = 4, .width = 9, .height = 1};
    struct fixture *fixture = *state;
    struct made made = make(fixture);

    driver.cuGraphAddDependencies_v2 = add_dependencies;
    own_memory(fixture);
    made.function->module = &made.module;
    made.module.device = &fixture->server.devices.device[0];
    serve_fnGraphCreate(fixture->session, &create);
    made.graph = session_lookup(fixture->session, WIRE_GRAPH, create.graph);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t params[4] = {11 + i};
        const struct wire_fnGraphKernelNode kernel = {
            .node = i, .shape = {1}, .params = params, .params_size = sizeof(params)};

        serve_fnGraphKernelNode(fixture->session, &kernel, made.graph, made.function);
    }
    serve_fnGraphMemsetNode(fixture->session, &fill, made.graph);
    serve_fnGraphEdges(fixture->session, &in, made.graph);
    fake_trace();
    assert_int_equal(instantiate(fixture, &made, 0), CUDA_SUCCESS);
    /* The driver refuses the second; the third leads to no kernel. */
    assert_string_equal(fake_trace(), "graph; node f5 11; node f5 12; edge of port 1 type 1; "
                                      "node f5 13; edge of port 2 type 0; "
                                      "edge of port -1 type -1; "
                                      "fill node 9 behind 1; instantiate x1; ");
    end_conditional(fixture, &made);
}

/* The handle could reach a kernel through memory, where the server cannot replace it. */
static void handles_that_are_no_parameters_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct made made = make(fixture);

    describe_conditional(fixture, &made, 0x74000000000002);
    assert_int_equal(instantiate(fixture, &made, 0), CUDA_ERROR_NOT_SUPPORTED);
    assert_string_equal(fake_trace(), "");
    end_conditional(fixture, &made);
}

static void confined_clients_have_no_conditional_nodes(void **state)
{
    const struct wire_cuGraphLaunch in = {0};
    struct fixture *fixture = *state;
    struct made made = make(fixture);
    struct partition partition = {0};

    describe_conditional(fixture, &made, 0x74000000000001);
    instantiate(fixture, &made, 0);
    made.stream->sm_share->partition = &partition;
    fake_trace();
    assert_int_equal(serve_cuGraphLaunch(fixture->session, &in, made.graph, made.stream),
                     CUDA_ERROR_NOT_SUPPORTED);
    assert_string_equal(fake_trace(), "");
    made.stream->sm_share->partition = NULL;
    end_conditional(fixture, &made);
}

static void a_module_that_ends_breaks_its_graphs(void **state)
{
    const struct wire_cuGraphLaunch in = {0};
    struct fixture *fixture = *state;
    struct made made = make(fixture);

    describe(fixture, &made);
    instantiate(fixture, &made, 0);
    fake_trace();
    forget_module(fixture->session, &made.module);
    assert_string_equal(fake_trace(), "destroy x1; destroy graph; ");
    assert_int_equal(serve_cuGraphLaunch(fixture->session, &in, made.graph, made.stream),
                     CUDA_ERROR_INVALID_HANDLE);
    end(fixture, &made);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_graph_of_the_driver),
        CASE(nodes_change),
        CASE(a_node_that_is_not_set_is_built_anew),
        CASE(errors_are_reported_by_instantiation),
        CASE(later_errors_are_reported_at_once),
        CASE(confined_clients_have_no_graphs),
        CASE(priorities_follow_the_client),
        CASE(conditional_nodes_are_the_drivers),
        CASE(conditional_nodes_stay_while_they_run),
        CASE(conditional_nodes_end_together),
        CASE(kernels_begin_early),
        CASE(handles_that_are_no_parameters_are_refused),
        CASE(confined_clients_have_no_conditional_nodes),
        CASE(a_module_that_ends_breaks_its_graphs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
