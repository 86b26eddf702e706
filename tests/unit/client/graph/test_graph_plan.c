/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever the graph: in a plan every node is behind all that it depends on. */
#include "unit.h"

#include "graph_plan.h"

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static void test_a_graph_without_steps_is_one_piece(void **state)
{
    struct plan_node nodes[4] = {{0}};
    const struct plan_edge edges[] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};

    (void)state;
    assert_int_equal(plan_make(nodes, 4, edges, COUNT(edges)), 1);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(nodes[i].segment, 0);
        assert_int_equal(nodes[i].number, i);
    }
    assert_true(plan_edge_in_segment(nodes, &edges[3]));
}

static void test_nothing_has_no_phases(void **state)
{
    (void)state;
    assert_int_equal(plan_make(NULL, 0, NULL, 0), 0);
}

/* Kernel, function, kernel; and beside them a kernel that has nothing to do with either. */
static void test_a_step_divides(void **state)
{
    struct plan_node nodes[4] = {{0}, {.kind = PLAN_STEP}, {0}, {0}};
    const struct plan_edge edges[] = {{0, 1}, {1, 2}};

    (void)state;
    assert_int_equal(plan_make(nodes, 4, edges, COUNT(edges)), 2);
    assert_int_equal(nodes[0].segment, 0);
    assert_int_equal(nodes[1].phase, 0);
    assert_int_equal(nodes[2].segment, 1);
    assert_int_equal(nodes[2].number, 0);
    assert_int_equal(nodes[3].segment, 0);
    assert_int_equal(nodes[3].number, 1);
    assert_false(plan_edge_in_segment(nodes, &edges[0]));
}

/* Steps that follow each other need nothing of the GPU between them. */
static void test_steps_share_a_phase(void **state)
{
    struct plan_node nodes[3] = {{.kind = PLAN_STEP}, {.kind = PLAN_STEP}, {.kind = PLAN_STEP}};
    const struct plan_edge edges[] = {{0, 1}, {1, 2}};

    (void)state;
    assert_int_equal(plan_make(nodes, 3, edges, COUNT(edges)), 1);
    assert_int_equal(nodes[2].phase, 0);
}

/* Up, kernel, down, function. */
static void test_pageable_copies(void **state)
{
    struct plan_node nodes[4] = {{.kind = PLAN_UP}, {0}, {.kind = PLAN_DOWN}, {.kind = PLAN_STEP}};
    const struct plan_edge edges[] = {{0, 1}, {1, 2}, {2, 3}};

    (void)state;
    assert_int_equal(plan_make(nodes, 4, edges, COUNT(edges)), 2);
    assert_int_equal(nodes[0].phase, 0);
    assert_int_equal(nodes[0].segment, 1);
    assert_int_equal(nodes[1].segment, 1);
    assert_int_equal(nodes[2].segment, 1);
    assert_int_equal(nodes[2].phase, 1);
    assert_int_equal(nodes[3].phase, 1);
    assert_true(plan_edge_in_segment(nodes, &edges[0]));
    assert_true(plan_edge_in_segment(nodes, &edges[1]));
}

/* When a part of a node comes: segments and steps alternate. */
static uint32_t begin_of(const struct plan_node *node)
{
    if (node->kind == PLAN_UP || node->kind == PLAN_STEP)
        return 2 * node->phase + 1;
    return 2 * node->segment;
}

static uint32_t end_of(const struct plan_node *node)
{
    if (node->kind == PLAN_DOWN || node->kind == PLAN_STEP)
        return 2 * node->phase + 1;
    return 2 * node->segment;
}

static uint32_t make_random_graph(uint64_t *seed, struct plan_node *nodes, uint32_t count,
                                  struct plan_edge *edges)
{
    uint32_t edge_count = 0;

    for (uint32_t to = 0; to < count; to++) {
        nodes[to] = (struct plan_node){
            .kind = unit_random(seed) % 2 ? PLAN_DEVICE : (enum plan_kind)(unit_random(seed) % 4)};
        for (uint32_t from = 0; from < to; from++)
            if (unit_random(seed) % 4 == 0)
                edges[edge_count++] = (struct plan_edge){from, to};
    }
    return edge_count;
}

static void test_order_is_kept(void **state)
{
    struct plan_node nodes[12];
    struct plan_edge edges[12 * 12];
    uint64_t seed = 11;

    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        uint32_t edge_count = make_random_graph(&seed, nodes, 12, edges);
        uint32_t phases = plan_make(nodes, 12, edges, edge_count);

        for (uint32_t i = 0; i < 12; i++)
            assert_true(end_of(&nodes[i]) < 2 * phases);
        for (uint32_t i = 0; i < edge_count; i++) {
            const struct plan_node *from = &nodes[edges[i].from], *to = &nodes[edges[i].to];

            assert_true(end_of(from) <= begin_of(to));
            if (plan_edge_in_segment(nodes, &edges[i]))
                assert_true(from->number < to->number);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_graph_without_steps_is_one_piece),
        cmocka_unit_test(test_nothing_has_no_phases),
        cmocka_unit_test(test_a_step_divides),
        cmocka_unit_test(test_steps_share_a_phase),
        cmocka_unit_test(test_pageable_copies),
        cmocka_unit_test(test_order_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
