/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In what order the parts of a graph are put into a stream. Work that the GPU does without the
 * program goes into segments, and each segment is a graph of the server. Between two segments the
 * client takes the program's own steps: its functions, and copies of memory that the GPU does not
 * reach. A graph without such steps is one segment. Pure: nodes are numbers, and come behind their
 * dependencies.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The work of one node. */
enum plan_kind {
    PLAN_DEVICE, /* something, or nothing, in a segment */
    PLAN_STEP,   /* a step */
    PLAN_UP,     /* a step, and behind it something in the next segment */
    PLAN_DOWN,   /* something in a segment, and behind it a step */
};

/* Segment 0, steps of phase 0, segment 1, steps of phase 1 ... */
struct plan_node {
    enum plan_kind kind;
    uint32_t segment; /* all but PLAN_STEP */
    uint32_t number;  /* in that segment */
    uint32_t phase;   /* of the step; all but PLAN_DEVICE */
};

/* `to` is behind `from`, and has the higher number. Between two kernels it may lead from a port, so
 * that the second one may begin earlier. */
struct plan_edge {
    uint32_t from, to;
    uint32_t port; /* and 16 * the type of the edge; 0: `from` has ended */
};

static inline bool plan_in_segment(const struct plan_node *node)
{
    return node->kind != PLAN_STEP;
}

static inline bool plan_has_step(const struct plan_node *node)
{
    return node->kind != PLAN_DEVICE;
}

/* Fills all but `kind`; edges are in the order of `to`. Returns how many phases there are. */
uint32_t plan_make(struct plan_node *nodes, uint32_t count, const struct plan_edge *edges,
                   uint32_t edge_count);

/* Whether an edge has to be sent to the server; the order of the phases ensures the others. */
bool plan_edge_in_segment(const struct plan_node *nodes, const struct plan_edge *edge);
