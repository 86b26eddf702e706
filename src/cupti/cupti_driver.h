/* SPDX-License-Identifier: Apache-2.0 */
/* The libcuda.so.1 of this process, if it is Funnel's. From any thread. */
#pragma once

#include <stdbool.h>

#include "cupti_abi.h"
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
    CUresult (*stream_flags)(CUstream stream, unsigned *ret_flags);
    CUresult (*stream_priority)(CUstream stream, int *ret_priority);
    CUresult (*pointer_attributes)(unsigned count, CUpointer_attribute *attributes,
                                   void **ret_values, CUdeviceptr address);
    CUresult (*pool_attribute)(CUmemoryPool pool, CUmemPool_attribute attribute, void *ret_value);
    CUresult (*device_count)(int *ret_count);
    CUresult (*device_attribute)(int *ret_value, CUdevice_attribute attribute, CUdevice device);
    CUresult (*device_memory)(size_t *ret_bytes, CUdevice device);
    CUresult (*device_name)(char *ret_name, int capacity, CUdevice device);
    CUresult (*device_uuid)(CUuuid *ret_uuid, CUdevice device);
    CUresult (*node_type)(CUgraphNode node, CUgraphNodeType *ret_type);
    CUresult (*graph_nodes)(CUgraph graph, CUgraphNode *ret_nodes, size_t *ret_count);
    CUresult (*child_graph)(CUgraphNode node, CUgraph *ret_graph);
    int (*nvtx_injection)(void *get_export_table);
};

/* NULL when there is no driver, or it is not Funnel's. */
const struct cupti_driver *cupti_driver(void);

/* Ids of the current context, its device, and a stream in it; 0 when there is none. */
uint32_t cupti_current_context(CUcontext *ret_context);
uint32_t cupti_current_device(void);
uint32_t cupti_stream_number(CUstream stream);

/* The id of a context; CUPTI_INVALID_ID for NULL. */
uint32_t cupti_context_number(CUcontext context);

/* As long as the function lives; NULL when there is none. */
const char *cupti_function_name(CUfunction function);
