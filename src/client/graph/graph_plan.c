/* SPDX-License-Identifier: Apache-2.0 */
/* Every node is placed as early as its dependencies allow; see graph_plan.h. */
#include "graph_plan.h"

static bool ends_with_step(const struct plan_node *node)
{
    return node->kind == PLAN_STEP || node->kind == PLAN_DOWN;
}

static uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The first segment, and the first phase for a step, that come behind a node. */
static uint32_t segment_behind(const struct plan_node *node)
{
    return ends_with_step(node) ? node->phase + 1 : node->segment;
}

static uint32_t phase_behind(const struct plan_node *node)
{
    return ends_with_step(node) ? node->phase : node->segment;
}

static void place_node(struct plan_node *node, uint32_t segment, uint32_t phase)
{
    node->segment = node->kind == PLAN_UP ? phase + 1 : segment;
    node->phase = node->kind == PLAN_DOWN ? segment : phase;
}

/* Numbers the nodes of each segment in their order. */
static void number_segments(struct plan_node *nodes, uint32_t count, uint32_t phases)
{
    for (uint32_t segment = 0; segment < phases; segment++) {
        uint32_t next = 0;

        for (uint32_t i = 0; i < count; i++)
            if (plan_in_segment(&nodes[i]) && nodes[i].segment == segment)
                nodes[i].number = next++;
    }
}

uint32_t plan_make(struct plan_node *nodes, uint32_t count, const struct plan_edge *edges,
                   uint32_t edge_count)
{
    uint32_t phases = 0, edge = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t segment = 0, phase = 0;

        for (; edge < edge_count && edges[edge].to == i; edge++) {
            segment = later(segment, segment_behind(&nodes[edges[edge].from]));
            phase = later(phase, phase_behind(&nodes[edges[edge].from]));
        }
        place_node(&nodes[i], segment, phase);
        phases = later(phases, 1 + later(plan_in_segment(&nodes[i]) ? nodes[i].segment : 0,
                                         plan_has_step(&nodes[i]) ? nodes[i].phase : 0));
    }
    number_segments(nodes, count, phases);
    return phases;
}

bool plan_edge_in_segment(const struct plan_node *nodes, const struct plan_edge *edge)
{
    const struct plan_node *from = &nodes[edge->from], *to = &nodes[edge->to];

    return plan_in_segment(from) && plan_in_segment(to) && from->segment == to->segment;
}
