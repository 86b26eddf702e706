/* SPDX-License-Identifier: Apache-2.0 */
/* An owner of graphs that runs nothing and remembers what it was asked. */
#pragma once

#include "graph_model.h"

#define FAKE_KERNEL ((CUfunction)0x1000)       /* of an int and a double */
#define FAKE_LIBRARY_KERNEL ((CUkernel)0x1008) /* the same, of a library */
#define FAKE_LIBRARY_FUNCTION ((CUfunction)0x1010)
#define FAKE_CONTEXT ((CUcontext)0x2000)
#define BAD_EVENT ((CUevent)0x3000)

extern unsigned fake_execs;  /* that live */
extern unsigned fake_sets;   /* of exec_set_locked() */
extern unsigned fake_memory; /* blocks that graphs have */
extern CUresult fake_set_result;
extern CUcontext fake_current;

/* Calls what was put off. */
void fake_run_later(void);

CUgraph new_graph(void);
CUgraphNode add_empty(CUgraph graph, const CUgraphNode *dependencies, size_t count);
CUgraphNode add_kernel(CUgraph graph, int number, double real);
/* The values that a kernel node was given. */
int number_of(CUgraphNode node);
CUgraphExec instantiate(CUgraph graph);
struct graph_node *clone_in(CUgraphExec exec, CUgraphNode original);
