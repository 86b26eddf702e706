/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's binary interface, as far as Funnel has it: our own declarations of what its public
 * headers say. A record grows at its end from version to version, so the longest layout serves
 * programs of CUDA 12 and 13. They walk a buffer with cuptiActivityGetNextRecord().
 * tests/cupti/layouts.c compares all of it with NVIDIA's headers where these are found.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"

#define CUPTI_EXPORT __attribute__((visibility("default")))

typedef enum {
    CUPTI_SUCCESS = 0,
    CUPTI_ERROR_INVALID_PARAMETER = 1,
    CUPTI_ERROR_INVALID_DEVICE = 2,
    CUPTI_ERROR_INVALID_CONTEXT = 3,
    CUPTI_ERROR_INVALID_OPERATION = 7,
    CUPTI_ERROR_OUT_OF_MEMORY = 8,
    CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT = 10,
    CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
    CUPTI_ERROR_NOT_INITIALIZED = 15,
    CUPTI_ERROR_QUEUE_EMPTY = 18,
    CUPTI_ERROR_INVALID_STREAM = 20,
    CUPTI_ERROR_INVALID_KIND = 21,
    CUPTI_ERROR_NOT_SUPPORTED = 27,
    CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS = 31,
    CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
    CUPTI_ERROR_UNKNOWN = 999,
} CUptiResult;

enum cupti_kind {
    CUPTI_KIND_MEMCPY = 1,
    CUPTI_KIND_MEMSET = 2,
    CUPTI_KIND_KERNEL = 3,
    CUPTI_KIND_DRIVER = 4,
    CUPTI_KIND_RUNTIME = 5,
    CUPTI_KIND_DEVICE = 8,
    CUPTI_KIND_CONTEXT = 9,
    CUPTI_KIND_CONCURRENT_KERNEL = 10,
    CUPTI_KIND_NAME = 11,
    CUPTI_KIND_MARKER = 12,
    CUPTI_KIND_MARKER_DATA = 13,
    CUPTI_KIND_OVERHEAD = 17,
    CUPTI_KIND_MEMCPY2 = 22,
    CUPTI_KIND_CUDA_EVENT = 36,
    CUPTI_KIND_STREAM = 37,
    CUPTI_KIND_SYNCHRONIZATION = 38,
    CUPTI_KIND_EXTERNAL_CORRELATION = 39,
    CUPTI_KIND_MEMORY2 = 49,
    CUPTI_KIND_MEMORY_POOL = 50,
    CUPTI_KIND_GRAPH_TRACE = 51,
    CUPTI_KINDS = 64, /* more than there are */
};

enum cupti_copy_kind {
    CUPTI_COPY_UNKNOWN = 0,
    CUPTI_COPY_HTOD = 1,
    CUPTI_COPY_DTOH = 2,
    CUPTI_COPY_DTOD = 8,
    CUPTI_COPY_HTOH = 9,
    CUPTI_COPY_PTOP = 10,
};

enum cupti_memory_kind {
    CUPTI_MEMORY_UNKNOWN = 0,
    CUPTI_MEMORY_PAGEABLE = 1,
    CUPTI_MEMORY_PINNED = 2,
    CUPTI_MEMORY_DEVICE = 3,
    CUPTI_MEMORY_MANAGED = 5,
};

enum cupti_memory_step {
    CUPTI_MEMORY_ALLOCATED = 1,
    CUPTI_MEMORY_RELEASED = 2,
};

enum cupti_pool_step {
    CUPTI_POOL_CREATED = 1,
    CUPTI_POOL_DESTROYED = 2,
    CUPTI_POOL_TRIMMED = 3,
};

#define CUPTI_POOL_LOCAL 1u /* the pool is this process's own */

enum cupti_stream_flag {
    CUPTI_STREAM_DEFAULT = 1,
    CUPTI_STREAM_NON_BLOCKING = 2,
};

#define CUPTI_COMPUTE_CUDA 1u

enum cupti_value_kind { /* CUpti_MetricValueKind */
                        CUPTI_VALUE_DOUBLE = 0,
                        CUPTI_VALUE_UINT64 = 1,
                        CUPTI_VALUE_INT64 = 4,
};

enum cupti_synchronization {
    CUPTI_SYNC_EVENT = 1,
    CUPTI_SYNC_STREAM_WAIT_EVENT = 2,
    CUPTI_SYNC_STREAM = 3,
    CUPTI_SYNC_CONTEXT = 4,
};

#define CUPTI_INVALID_ID UINT32_MAX /* of a stream or event that does not apply */
#define CUPTI_OVERHEAD_BUFFER_FLUSH (1u << 16)
#define CUPTI_OBJECT_THREAD 2u
#define CUPTI_OBJECT_DEVICE 3u
#define CUPTI_OBJECT_CONTEXT 4u
#define CUPTI_OBJECT_STREAM 5u
#define CUPTI_CACHE_UNKNOWN 0u
#define CUPTI_FLAG_ASYNC 1u
#define CUPTI_FLAG_MARKER_INSTANTANEOUS 1u
#define CUPTI_FLAG_MARKER_START 2u
#define CUPTI_FLAG_MARKER_END 4u
#define CUPTI_FLAG_COLOR_NONE 1u
#define CUPTI_FLAG_COLOR_ARGB 2u

/* Records: 8-byte aligned, as NVIDIA's; reserved members are 0. */
#define CUPTI_RECORD __attribute__((packed, aligned(8)))

struct CUPTI_RECORD cupti_copy { /* CUpti_ActivityMemcpy6 */
    uint32_t kind;
    uint8_t copy_kind, source_kind, destination_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation, runtime_correlation, pad;
    uint64_t reserved, graph_node;
    uint32_t graph, channel, channel_type;
    uint8_t is_device_launched, pad2[3];
    uint64_t copy_count;
};

struct CUPTI_RECORD cupti_peer_copy { /* CUpti_ActivityMemcpyPtoP4 */
    uint32_t kind;
    uint8_t copy_kind, source_kind, destination_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t source_device, source_context, destination_device, destination_context;
    uint32_t correlation;
    uint64_t reserved, graph_node;
    uint32_t graph, channel, channel_type;
};

struct CUPTI_RECORD cupti_memset { /* CUpti_ActivityMemset4 */
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint16_t flags, memory_kind;
    uint32_t pad;
    uint64_t reserved, graph_node;
    uint32_t graph, channel, channel_type;
    uint8_t is_device_launched, pad2[3];
};

struct CUPTI_RECORD cupti_kernel { /* CUpti_ActivityKernel10 */
    uint32_t kind;
    uint8_t cache_config, shared_config;
    uint16_t registers;
    uint32_t global_cache_requested, global_cache_executed;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local_per_thread, local_total, correlation;
    int64_t grid_id;
    const char *name;
    uint64_t reserved, queued, submitted;
    uint8_t launch_type, is_carveout_requested, carveout, pad;
    uint32_t shared_executed;
    uint64_t graph_node;
    uint32_t shared_limit_config, graph;
    void *access_policy;
    uint32_t channel, channel_type;
    uint32_t cluster[3], cluster_policy;
    uint64_t local_total_long;
    uint32_t max_potential_cluster, max_active_clusters;
    uint8_t is_device_launched, pad2[7];
};

struct CUPTI_RECORD cupti_call { /* CUpti_ActivityAPI */
    uint32_t kind, cbid;
    uint64_t start, end;
    uint32_t process, thread, correlation, result;
};

struct CUPTI_RECORD cupti_external { /* CUpti_ActivityExternalCorrelation */
    uint32_t kind, external_kind;
    uint64_t external;
    uint32_t correlation, reserved;
};

struct CUPTI_RECORD cupti_wait { /* CUpti_ActivitySynchronization2 */
    uint32_t kind, type;
    uint64_t start, end;
    uint32_t correlation, context, stream, event;
    uint64_t event_number;
    uint32_t result, pad;
};

struct CUPTI_RECORD cupti_overhead { /* CUpti_ActivityOverhead3 */
    uint32_t kind, overhead_kind, object_kind;
    uint32_t process, thread, object_rest;
    uint64_t start, end;
    uint32_t correlation, reserved;
    void *data;
};

struct CUPTI_RECORD cupti_graph { /* CUpti_ActivityGraphTrace2 */
    uint32_t kind, correlation;
    uint64_t start, end;
    uint32_t device, graph, context, stream;
    uint64_t reserved;
    uint32_t end_device, end_context;
};

struct CUPTI_RECORD cupti_marker { /* CUpti_ActivityMarker2 */
    uint32_t kind, flags;
    uint64_t time;
    uint32_t id, object_kind;
    uint32_t process, thread, object_rest, pad;
    const char *name, *domain;
};

struct CUPTI_RECORD cupti_marker_data { /* CUpti_ActivityMarkerData2 */
    uint32_t kind, flags, id, payload_kind;
    uint64_t payload;
    uint32_t color, category, domain, pad;
};

struct CUPTI_RECORD cupti_name { /* CUpti_ActivityName */
    uint32_t kind, object_kind;
    uint32_t object[3]; /* process and thread, or device, context and stream */
    uint32_t pad;
    const char *name;
};

struct CUPTI_RECORD cupti_event { /* CUpti_ActivityCudaEvent2 */
    uint32_t kind, correlation, context, stream, event, pad, device, pad2;
    void *reserved;
    uint64_t device_time, number;
};

struct CUPTI_RECORD cupti_pool_facts { /* of CUpti_ActivityMemory4 */
    uint32_t type, pad;
    uint64_t address, threshold, size, used;
};

struct CUPTI_RECORD cupti_memory { /* CUpti_ActivityMemory4 */
    uint32_t kind, step, memory_kind, correlation;
    uint64_t address, bytes, time, caller;
    uint32_t process, device, context, stream;
    const char *name;
    uint32_t is_async, pad;
    struct cupti_pool_facts pool;
    const char *source;
};

struct CUPTI_RECORD cupti_pool { /* CUpti_ActivityMemoryPool3 */
    uint32_t kind, step, type, correlation, process, device;
    uint64_t kept, address, size, threshold, time, used;
    uint8_t is_managed, pad[7];
};

struct CUPTI_RECORD cupti_context { /* CUpti_ActivityContext3 */
    uint32_t kind, context, device;
    uint16_t compute_kind, null_stream;
    uint32_t parent;
    uint8_t is_green, pad;
    uint16_t multiprocessors;
    uint32_t graphics, pad2;
};

struct CUPTI_RECORD cupti_stream { /* CUpti_ActivityStream */
    uint32_t kind, context, stream, priority, flag, correlation;
};

struct CUPTI_RECORD cupti_device { /* CUpti_ActivityDevice5 */
    uint32_t kind, flags;
    uint64_t memory_bandwidth, memory_size; /* kB a second, bytes */
    uint32_t constant_size, l2_size, warp_size, clock_rate, copy_engines, multiprocessors, max_ipc;
    uint32_t max_warps, max_blocks, shared_size, registers; /* of a multiprocessor */
    uint32_t block_registers, block_shared, block_threads, block[3], grid[3];
    uint32_t major, minor, id, ecc_enabled;
    CUuuid uuid;
    const char *name; /* that the program frees */
    uint8_t is_visible, is_mig, reserved[6];
    uint32_t gpu_instance, compute_instance;
    CUuuid mig_uuid;
    uint32_t is_numa_node, numa_node;
};

/* ---- callbacks ---- */

enum cupti_domain {
    CUPTI_DOMAIN_DRIVER = 1,
    CUPTI_DOMAIN_RUNTIME = 2,
    CUPTI_DOMAIN_RESOURCE = 3,
    CUPTI_DOMAIN_SYNCHRONIZE = 4,
    CUPTI_DOMAIN_NVTX = 5,
    CUPTI_DOMAINS = 7,
};

enum cupti_site {
    CUPTI_ENTER = 0,
    CUPTI_EXIT = 1,
};

/* CUpti_CallbackData */
struct cupti_callback_data {
    uint32_t site;
    const char *function_name;
    const void *parameters; /* NULL where the call takes a struct by value */
    void *return_value;
    const char *symbol_name;
    CUcontext context;
    uint32_t context_id;
    uint64_t *correlation_data;
    uint32_t correlation;
};

enum cupti_resource {
    CUPTI_CONTEXT_CREATED = 1,
    CUPTI_CONTEXT_DESTROY_STARTING = 2,
    CUPTI_STREAM_CREATED = 3,
    CUPTI_STREAM_DESTROY_STARTING = 4,
    CUPTI_CU_INIT_FINISHED = 5,
    CUPTI_MODULE_LOADED = 6,
    CUPTI_MODULE_UNLOAD_STARTING = 7,
    CUPTI_GRAPH_CREATED = 9,
    CUPTI_GRAPH_DESTROY_STARTING = 10,
    CUPTI_GRAPH_CLONED = 11,
    CUPTI_GRAPHNODE_CREATE_STARTING = 12,
    CUPTI_GRAPHNODE_CREATED = 13,
    CUPTI_GRAPHNODE_DESTROY_STARTING = 14,
    CUPTI_GRAPHEXEC_CREATE_STARTING = 17,
    CUPTI_GRAPHEXEC_CREATED = 18,
    CUPTI_GRAPHEXEC_DESTROY_STARTING = 19,
    CUPTI_GRAPHNODE_CLONED = 20,
};

/* CUpti_ResourceData */
struct cupti_resource_data {
    CUcontext context;
    CUstream stream;
    void *descriptor;
};

/* CUpti_ModuleResourceData */
struct cupti_module_data {
    uint32_t module;
    size_t size;
    const char *code;
};

/* CUpti_GraphData */
struct cupti_graph_data {
    CUgraph graph, original_graph;
    CUgraphNode node, original_node;
    CUgraphNodeType type;
    CUgraphNode dependency;
    CUgraphExec exec;
};

/* CUpti_NvtxData */
struct cupti_nvtx_data {
    const char *function_name;
    const void *parameters;
    const void *return_value;
};

/* CUpti_SubscriberParams of 13.0 */
struct cupti_subscriber {
    size_t size;
    const char *name;
    char *old_name;
    size_t old_size;
};

typedef void (*cupti_callback)(void *user, uint32_t domain, uint32_t cbid, const void *data);
typedef void (*cupti_request_buffer)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*cupti_complete_buffer)(CUcontext context, uint32_t stream, uint8_t *buffer,
                                      size_t size, size_t valid);
typedef uint64_t (*cupti_timestamp)(void);
