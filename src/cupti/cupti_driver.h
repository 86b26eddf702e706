/* SPDX-License-Identifier: Apache-2.0 */
/* The libcuda.so.1 of this process, if it is Funnel's. From any thread. */
#pragma once

#include <stdbool.h>

#include "profiler_interface.h"

/* Entry points that have no hook while a hook calls them. */
struct cupti_driver {
    const struct profiler_interface *profiler;
    CUresult (*get_current)(CUcontext *ret_context);
    CUresult (*set_current)(CUcontext context);
    CUresult (*context_id)(CUcontext context, unsigned long long *ret_id);
    CUresult (*context_device)(CUdevice *ret_device);
    CUresult (*stream_id)(CUstream stream, unsigned long long *ret_id);
    CUresult (*stream_id_per_thread)(CUstream stream, unsigned long long *ret_id);
    CUresult (*function_name)(const char **ret_name, CUfunction function);
    CUresult (*capture_info)(CUstream stream, CUstreamCaptureStatus *ret_status, cuuint64_t *ret_id,
                             CUgraph *ret_graph, const CUgraphNode **ret_nodes, size_t *ret_count);
    CUresult (*node_type)(CUgraphNode node, CUgraphNodeType *ret_type);
    int (*nvtx_injection)(void *get_export_table);
};

/* NULL when there is no driver, or it is not Funnel's. */
const struct cupti_driver *cupti_driver(void);

/* Ids of the current context, and of a stream in it; 0 when there is none. */
uint32_t cupti_current_context(CUcontext *ret_context);
uint32_t cupti_stream_number(CUstream stream);

/* As long as the function lives; NULL when there is none. */
const char *cupti_function_name(CUfunction function);
