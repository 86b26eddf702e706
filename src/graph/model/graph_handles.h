/* SPDX-License-Identifier: Apache-2.0 */
/* One table of all handles. */
#pragma once

#include <stdint.h>

enum graph_handle_type {
    GRAPH_HANDLE_GRAPH = 0x70, /* apart from the types of the owners' tables */
    GRAPH_HANDLE_NODE,
    GRAPH_HANDLE_EXEC,
    GRAPH_HANDLE_OBJECT,
    GRAPH_HANDLE_CONDITION,
};

/* 0: no memory. */
uint64_t graph_handle_add(enum graph_handle_type type, void *object);
void *graph_handle_get(enum graph_handle_type type, const void *handle);
void graph_handle_remove(enum graph_handle_type type, uint64_t handle);
