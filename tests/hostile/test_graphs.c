/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that are forged: descriptions that do not hold together, or that name what is not the
 * client's. Others are used when they should not be.
 */
#include <string.h>

#include "cuda_abi.h"
#include "fd.h"
#include "hostile.h"

#define NODES 3u

/* A client with a kernel, a stream and a graph of three nodes that is not described yet. */
struct forger {
    struct peer peer;
    uint64_t module, function, stream, graph;
};

static void create(struct forger *forger, uint32_t device, uint32_t nodes)
{
    const struct wire_fnGraphCreate in = {
        .graph = peer_handle(&forger->peer, WIRE_GRAPH), .device = device, .nodes = nodes};

    forger->graph = in.graph;
    channel_lock(&forger->peer.channel);
    assert_int_equal(wire_fnGraphCreate(&forger->peer.channel, &in), CUDA_SUCCESS);
    channel_unlock(&forger->peer.channel);
}

static void begin(struct forger *forger)
{
    assert_true(peer_attach(&forger->peer, hostile.server.socket));
    forger->stream = peer_make_stream(&forger->peer, 1);
    assert_int_equal(
        peer_load_module(&forger->peer, witness_ptx, strlen(witness_ptx) + 1, &forger->module), 0);
    assert_int_equal(
        peer_find_function(&forger->peer, forger->module, "vector_add", &forger->function), 0);
    create(forger, 0, NODES);
}

static void add_kernel_with(struct forger *forger, uint32_t node, const void *params,
                            uint32_t params_size)
{
    const struct wire_fnGraphKernelNode in = {.graph = forger->graph,
                                              .f = forger->function,
                                              .node = node,
                                              .shape = {1, 1, 1, 1, 1, 1},
                                              .params = params,
                                              .params_size = params_size};

    channel_lock(&forger->peer.channel);
    wire_fnGraphKernelNode(&forger->peer.channel, &in);
    channel_unlock(&forger->peer.channel);
}

static void add_kernel(struct forger *forger, uint32_t node, uint32_t params_size)
{
    static const unsigned char params[256];

    add_kernel_with(forger, node, params, params_size);
}

static void add_copy(struct forger *forger, uint32_t node, uint64_t dst, uint64_t src,
                     uint64_t width)
{
    const struct wire_fnGraphCopyNode in = {.graph = forger->graph,
                                            .node = node,
                                            .dst = dst,
                                            .src = src,
                                            .dst_pitch = width,
                                            .src_pitch = width,
                                            .dst_height = 1,
                                            .src_height = 1,
                                            .width = width,
                                            .height = 1,
                                            .depth = 1};

    channel_lock(&forger->peer.channel);
    wire_fnGraphCopyNode(&forger->peer.channel, &in);
    channel_unlock(&forger->peer.channel);
}

static void add_memset(struct forger *forger, uint32_t node, uint64_t dst)
{
    const struct wire_fnGraphMemsetNode in = {.graph = forger->graph,
                                              .node = node,
                                              .dst = dst,
                                              .pitch = 64,
                                              .element_size = 4,
                                              .width = 16,
                                              .height = 1};

    channel_lock(&forger->peer.channel);
    wire_fnGraphMemsetNode(&forger->peer.channel, &in);
    channel_unlock(&forger->peer.channel);
}

static void add_edges(struct forger *forger, const void *edges, uint32_t size)
{
    const struct wire_fnGraphEdges in = {
        .graph = forger->graph, .edges = edges, .edges_size = size};

    channel_lock(&forger->peer.channel);
    wire_fnGraphEdges(&forger->peer.channel, &in);
    channel_unlock(&forger->peer.channel);
}

static void launch(struct forger *forger, uint64_t graph)
{
    const struct wire_cuGraphLaunch in = {.graph = graph, .hStream = forger->stream};

    channel_lock(&forger->peer.channel);
    wire_cuGraphLaunch(&forger->peer.channel, &in);
    channel_unlock(&forger->peer.channel);
}

static CUresult instantiate(struct forger *forger, uint32_t empty)
{
    const struct wire_cuGraphInstantiateWithFlags in = {
        .graph = forger->graph, .flags = UINT32_MAX, .empty = empty};

    return wire_cuGraphInstantiateWithFlags(&forger->peer.channel, &in);
}

/* The description is refused, and the client continues. */
static void is_refused(struct forger *forger, uint32_t empty)
{
    assert_int_not_equal(instantiate(forger, empty), CUDA_SUCCESS);
    launch(forger, forger->graph);
    assert_int_not_equal(hostile_deferred(&forger->peer), CUDA_SUCCESS);
    peer_leave(&forger->peer);
}

static void an_honest_graph_is_taken(void **state)
{
    const uint32_t edges[] = {0, 1, 0, 2, 1, 2};
    struct forger forger;

    (void)state;
    begin(&forger);
    uint64_t own = forger.peer.offer.staging_address;
    add_copy(&forger, 0, own, own + 4096, 64);
    add_copy(&forger, 1, own + 64, own + 4096, 64);
    add_memset(&forger, 2, own + 128);
    add_edges(&forger, edges, sizeof(edges));
    assert_int_equal(instantiate(&forger, NODES - 3), CUDA_SUCCESS);
    launch(&forger, forger.graph);
    assert_int_equal(hostile_deferred(&forger.peer), CUDA_SUCCESS);
    assert_int_not_equal(instantiate(&forger, NODES - 3), CUDA_SUCCESS);
    peer_leave(&forger.peer);
}

static void edges_that_lead_astray(void **state)
{
    /* The upper bits of the first are a port. */
    const uint32_t wrong[][4] = {{1, 0, 0, 1},
                                 {1, 1, 0, 2},
                                 {0, 3, 0, 1},
                                 {0, 2, 0, 1},
                                 {9, 10, 0, 1},
                                 {0, UINT32_MAX, 0, 1},
                                 {1 | 1u << 24, 1, 0, 1},
                                 {3u << 24, 1, 0, 1},
                                 {0x21u << 24, 1, 0, 1},
                                 {UINT32_MAX, 1, 0, 1}};
    struct forger forger;

    (void)state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        begin(&forger);
        add_edges(&forger, wrong[i], sizeof(wrong[i]));
        is_refused(&forger, NODES);
    }
    begin(&forger);
    add_edges(&forger, wrong[0], 7);
    assert_int_equal(hostile_deferred(&forger.peer), CUDA_ERROR_INVALID_VALUE);
    peer_leave(&forger.peer);
}

static void more_edges_than_there_can_be(void **state)
{
    static uint32_t edges[2048][2];
    struct forger forger;

    (void)state;
    for (unsigned i = 0; i < 2048; i++)
        edges[i][1] = 1;
    begin(&forger);
    for (unsigned i = 0; i < 4096; i++)
        add_edges(&forger, edges, sizeof(edges));
    is_refused(&forger, NODES);
}

static void memory_of_others(void **state)
{
    struct forger forger;

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        begin(&forger);
        uint64_t own = forger.peer.offer.staging_address;
        const uint64_t foreign[] = {0,
                                    (uintptr_t)&forger,
                                    hostile.witness.memory,
                                    forger.peer.offer.window_base,
                                    own + forger.peer.offer.gpu_size,
                                    UINT64_MAX - 10};
        add_copy(&forger, 0, i % 2 ? own : foreign[i], i % 2 ? foreign[i] : own, 64);
        is_refused(&forger, NODES - 1);
        begin(&forger);
        add_memset(&forger, 0, foreign[i]);
        is_refused(&forger, NODES - 1);
    }
}

static void nodes_that_are_none(void **state)
{
    struct forger forger;

    (void)state;
    begin(&forger);
    add_kernel(&forger, NODES, 64);
    is_refused(&forger, NODES);
    begin(&forger);
    add_kernel(&forger, 0, 3); /* too few parameters */
    is_refused(&forger, NODES - 1);
    begin(&forger);
    forger.function++;
    add_kernel(&forger, 0, 64); /* no such function: the node stays empty */
    assert_int_equal(hostile_deferred(&forger.peer), CUDA_ERROR_INVALID_HANDLE);
    is_refused(&forger, NODES - 1);
}

#define CONDITION (1u << 20)

static void add_conditional(struct forger *forger, uint32_t node, const uint32_t *counts,
                            uint32_t size)
{
    const struct wire_fnGraphConditionalNode in = {.graph = forger->graph,
                                                   .node = node,
                                                   .condition = CONDITION,
                                                   .kind = CU_GRAPH_COND_TYPE_SWITCH,
                                                   .bodies = counts,
                                                   .bodies_size = size};

    channel_lock(&forger->peer.channel);
    wire_fnGraphConditionalNode(&forger->peer.channel, &in);
    channel_unlock(&forger->peer.channel);
}

/* Graphs inside that are longer than the graph, cut others in two, or of no whole numbers. */
static void conditional_nodes_with_impossible_graphs(void **state)
{
    static const struct {
        uint32_t node, counts[2], size;
    } wrong[] = {{0, {3, 0}, 8},       {0, {UINT32_MAX, 3}, 8}, {3, {0, 0}, 8},
                 {UINT32_MAX, {0}, 4}, {0, {1, 1}, 7},          {0, {0}, 0},
                 {0, {2, 1}, 8}};
    const uint32_t two[] = {2}, one[] = {1};
    struct forger forger;

    (void)state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        begin(&forger);
        add_conditional(&forger, wrong[i].node, wrong[i].counts, wrong[i].size);
        is_refused(&forger, NODES - 1);
    }
    begin(&forger);
    add_conditional(&forger, 0, one, sizeof(one));
    add_conditional(&forger, 1, one, sizeof(one)); /* its second node is outside */
    is_refused(&forger, NODES - 2);
    begin(&forger);
    add_conditional(&forger, 1, one, sizeof(one));
    add_conditional(&forger, 0, two, sizeof(two)); /* around one that is there */
    is_refused(&forger, NODES - 2);
}

static void conditional_nodes_at_the_wrong_time(void **state)
{
    const uint32_t one[] = {1}, across[] = {0, 1};
    struct forger forger;

    (void)state;
    begin(&forger);
    add_edges(&forger, across, sizeof(across));
    add_conditional(&forger, 0, one, sizeof(one));
    is_refused(&forger, NODES - 1);
    begin(&forger);
    add_conditional(&forger, 0, one, sizeof(one));
    add_edges(&forger, across, sizeof(across)); /* into a graph inside */
    is_refused(&forger, NODES - 1);
    begin(&forger);
    add_conditional(&forger, 0, one, sizeof(one));
    add_kernel(&forger, 0, 64); /* in place of what others are in */
    is_refused(&forger, NODES - 1);
    begin(&forger);
    add_conditional(&forger, 0, one, sizeof(one)); /* no kernel could ever set it */
    is_refused(&forger, NODES - 1);
}

/* Conditional nodes one in the other behind a kernel that sets their condition: what the server
 * says of that graph. */
static CUresult nest(uint32_t levels)
{
    const uint64_t params[8] = {CONDITION};
    struct forger forger;

    begin(&forger);
    create(&forger, 0, levels + 1);
    for (uint32_t i = 0; i < levels; i++) {
        const uint32_t rest[] = {levels - 1 - i};

        add_conditional(&forger, 1 + i, rest, sizeof(rest));
    }
    add_kernel_with(&forger, 0, params, sizeof(params));
    CUresult result = instantiate(&forger, 0);
    peer_leave(&forger.peer);
    return result;
}

/* Deeper than the server may go. */
static void conditional_nodes_without_end(void **state)
{
    (void)state;
    assert_int_equal(nest(3), CUDA_SUCCESS);
    assert_int_equal(nest(40), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(nest(1000), CUDA_ERROR_NOT_SUPPORTED);
}

static void graphs_of_impossible_size(void **state)
{
    struct forger forger;

    (void)state;
    begin(&forger);
    create(&forger, 0, 0);
    assert_int_equal(hostile_deferred(&forger.peer), CUDA_ERROR_INVALID_VALUE);
    create(&forger, 0, UINT32_MAX);
    assert_int_equal(hostile_deferred(&forger.peer), CUDA_ERROR_INVALID_VALUE);
    create(&forger, 77, 1);
    assert_int_equal(hostile_deferred(&forger.peer), CUDA_ERROR_INVALID_DEVICE);
    for (unsigned i = 0; i < 20; i++)
        create(&forger, 0, 1u << 18); /* each alone is allowed */
    add_kernel(&forger, 0, 16);       /* it has no such node */
    assert_int_equal(instantiate(&forger, 0), CUDA_ERROR_OUT_OF_MEMORY);
    is_refused(&forger, 0);
}

/* Launched and changed while it is only half described, and after it is gone. */
static void graphs_at_the_wrong_time(void **state)
{
    struct forger forger;

    (void)state;
    begin(&forger);
    launch(&forger, forger.graph);
    assert_int_equal(hostile_deferred(&forger.peer), CUDA_ERROR_INVALID_VALUE);
    launch(&forger, forger.stream);
    assert_int_equal(hostile_deferred(&forger.peer), CUDA_ERROR_INVALID_HANDLE);

    const struct wire_cuGraphNodeSetEnabled enable = {.graph = forger.graph, .node = 7};
    const struct wire_cuGraphExecDestroy destroy = {.graph = forger.graph};
    channel_lock(&forger.peer.channel);
    wire_cuGraphNodeSetEnabled(&forger.peer.channel, &enable);
    wire_cuGraphExecDestroy(&forger.peer.channel, &destroy);
    wire_cuGraphExecDestroy(&forger.peer.channel, &destroy);
    channel_unlock(&forger.peer.channel);
    assert_int_not_equal(hostile_deferred(&forger.peer), CUDA_SUCCESS);
    launch(&forger, forger.graph);
    assert_int_equal(hostile_deferred(&forger.peer), CUDA_ERROR_INVALID_HANDLE);
    peer_leave(&forger.peer);
}

/* The module goes, and the graph that has its kernel stays. */
static void kernels_of_a_module_that_is_gone(void **state)
{
    struct forger forger;

    (void)state;
    begin(&forger);
    add_kernel(&forger, 0, 64);
    assert_int_equal(instantiate(&forger, NODES - 1), CUDA_SUCCESS);
    const struct wire_cuLibraryUnload unload = {.library = forger.module};
    channel_lock(&forger.peer.channel);
    wire_cuLibraryUnload(&forger.peer.channel, &unload);
    channel_unlock(&forger.peer.channel);
    launch(&forger, forger.graph);
    assert_int_equal(hostile_deferred(&forger.peer), CUDA_ERROR_INVALID_HANDLE);
    peer_leave(&forger.peer);
}

/* The only kernel becomes a copy while the graph is described, and then its module goes. */
static void a_kernel_that_was_replaced(void **state)
{
    struct forger forger;

    (void)state;
    begin(&forger);
    uint64_t own = forger.peer.offer.staging_address;
    add_kernel(&forger, 0, 64);
    add_copy(&forger, 0, own, own + 4096, 64);
    assert_int_equal(instantiate(&forger, NODES - 1), CUDA_SUCCESS);
    const struct wire_cuLibraryUnload unload = {.library = forger.module};
    channel_lock(&forger.peer.channel);
    wire_cuLibraryUnload(&forger.peer.channel, &unload);
    channel_unlock(&forger.peer.channel);
    for (unsigned i = 0; i < 8; i++) { /* the memory of the function is used for others */
        uint64_t module;
        assert_int_equal(
            peer_load_module(&forger.peer, witness_ptx, strlen(witness_ptx) + 1, &module), 0);
    }
    launch(&forger, forger.graph);
    assert_int_equal(hostile_deferred(&forger.peer), CUDA_SUCCESS);
    peer_leave(&forger.peer);
}

static CUresult release(struct forger *forger, uint64_t address)
{
    const struct wire_fnGranuleRelease in = {.address = address};

    channel_lock(&forger->peer.channel);
    wire_fnGranuleRelease(&forger->peer.channel, &in);
    channel_unlock(&forger->peer.channel);
    return hostile_deferred(&forger->peer);
}

/* An address that was the client's when the graph was described, and is not when it is launched. */
static void memory_that_was_given_back(void **state)
{
    struct forger forger;
    _cleanup_fd_ int fd = -1;
    uint64_t granule;

    (void)state;
    begin(&forger);
    uint64_t own = forger.peer.offer.staging_address;
    assert_int_equal(peer_make_host_granule(&forger.peer, 2u << 20, &granule, &fd), CUDA_SUCCESS);
    add_copy(&forger, 0, granule, own, 64);
    add_copy(&forger, 1, own, granule, 64);
    assert_int_equal(instantiate(&forger, 1), CUDA_SUCCESS);
    launch(&forger, forger.graph);
    assert_int_equal(hostile_deferred(&forger.peer), CUDA_SUCCESS);
    assert_int_equal(release(&forger, granule), CUDA_SUCCESS);
    launch(&forger, forger.graph);
    assert_int_equal(hostile_deferred(&forger.peer), CUDA_ERROR_INVALID_VALUE);
    peer_leave(&forger.peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(conditional_nodes_with_impossible_graphs),
        HOSTILE_CASE(conditional_nodes_at_the_wrong_time),
        HOSTILE_CASE(conditional_nodes_without_end),
        HOSTILE_CASE(an_honest_graph_is_taken),
        HOSTILE_CASE(edges_that_lead_astray),
        HOSTILE_CASE(more_edges_than_there_can_be),
        HOSTILE_CASE(memory_of_others),
        HOSTILE_CASE(nodes_that_are_none),
        HOSTILE_CASE(graphs_of_impossible_size),
        HOSTILE_CASE(graphs_at_the_wrong_time),
        HOSTILE_CASE(kernels_of_a_module_that_is_gone),
        HOSTILE_CASE(a_kernel_that_was_replaced),
        HOSTILE_CASE(memory_that_was_given_back),
    };

    return HOSTILE_MAIN(tests);
}
