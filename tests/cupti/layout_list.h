/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of declarations that must agree: Funnel's (cupti_abi.h), and the newest of NVIDIA's headers
 * for 13.0, of which those for CUDA 12 are the beginning. Each user defines the macros. */

#define NUMBERS                                                                                    \
    RECORD(cupti_marker_data, CUpti_ActivityMarkerData2)                                           \
    MEMBER(cupti_marker_data, id, CUpti_ActivityMarkerData2, id)                                   \
    MEMBER(cupti_marker_data, payload_kind, CUpti_ActivityMarkerData2, payloadKind)                \
    MEMBER(cupti_marker_data, payload, CUpti_ActivityMarkerData2, payload)                         \
    MEMBER(cupti_marker_data, category, CUpti_ActivityMarkerData2, category)                       \
    MEMBER(cupti_marker_data, domain, CUpti_ActivityMarkerData2, cuptiDomainId)                    \
    MEMBER(cupti_marker_data, category, CUpti_ActivityMarkerData, category)                        \
    RECORD(cupti_name, CUpti_ActivityName)                                                         \
    MEMBER(cupti_name, object, CUpti_ActivityName, objectId)                                       \
    MEMBER(cupti_name, name, CUpti_ActivityName, name)                                             \
    RECORD(cupti_event, CUpti_ActivityCudaEvent2)                                                  \
    MEMBER(cupti_event, event, CUpti_ActivityCudaEvent2, eventId)                                  \
    MEMBER(cupti_event, device, CUpti_ActivityCudaEvent2, deviceId)                                \
    MEMBER(cupti_event, device_time, CUpti_ActivityCudaEvent2, deviceTimestamp)                    \
    MEMBER(cupti_event, number, CUpti_ActivityCudaEvent2, cudaEventSyncId)                         \
    MEMBER(cupti_event, event, CUpti_ActivityCudaEvent, eventId)                                   \
    MEMBER(cupti_wait, event_number, CUpti_ActivitySynchronization2, cudaEventSyncId)              \
    RECORD(cupti_memory, CUpti_ActivityMemory4)                                                    \
    MEMBER(cupti_memory, step, CUpti_ActivityMemory4, memoryOperationType)                         \
    MEMBER(cupti_memory, memory_kind, CUpti_ActivityMemory4, memoryKind)                           \
    MEMBER(cupti_memory, correlation, CUpti_ActivityMemory4, correlationId)                        \
    MEMBER(cupti_memory, bytes, CUpti_ActivityMemory4, bytes)                                      \
    MEMBER(cupti_memory, time, CUpti_ActivityMemory4, timestamp)                                   \
    MEMBER(cupti_memory, process, CUpti_ActivityMemory4, processId)                                \
    MEMBER(cupti_memory, stream, CUpti_ActivityMemory4, streamId)                                  \
    MEMBER(cupti_memory, is_async, CUpti_ActivityMemory4, isAsync)                                 \
    MEMBER(cupti_memory, pool, CUpti_ActivityMemory4, memoryPoolConfig)                            \
    MEMBER(cupti_memory, pool.size, CUpti_ActivityMemory4, memoryPoolConfig.pool.size)             \
    MEMBER(cupti_memory, pool.used, CUpti_ActivityMemory4, memoryPoolConfig.utilizedSize)          \
    MEMBER(cupti_memory, source, CUpti_ActivityMemory4, source)                                    \
    MEMBER(cupti_memory, pool.threshold, CUpti_ActivityMemory3, memoryPoolConfig.releaseThreshold) \
    RECORD(cupti_pool, CUpti_ActivityMemoryPool3)                                                  \
    MEMBER(cupti_pool, step, CUpti_ActivityMemoryPool3, memoryPoolOperationType)                   \
    MEMBER(cupti_pool, device, CUpti_ActivityMemoryPool3, deviceId)                                \
    MEMBER(cupti_pool, kept, CUpti_ActivityMemoryPool3, minBytesToKeep)                            \
    MEMBER(cupti_pool, address, CUpti_ActivityMemoryPool3, address)                                \
    MEMBER(cupti_pool, size, CUpti_ActivityMemoryPool3, size)                                      \
    MEMBER(cupti_pool, threshold, CUpti_ActivityMemoryPool3, releaseThreshold)                     \
    MEMBER(cupti_pool, time, CUpti_ActivityMemoryPool3, timestamp)                                 \
    MEMBER(cupti_pool, used, CUpti_ActivityMemoryPool3, utilizedSize)                              \
    MEMBER(cupti_pool, is_managed, CUpti_ActivityMemoryPool3, isManagedPool)                       \
    MEMBER(cupti_pool, used, CUpti_ActivityMemoryPool2, utilizedSize)                              \
    RECORD(cupti_context, CUpti_ActivityContext3)                                                  \
    MEMBER(cupti_context, device, CUpti_ActivityContext3, deviceId)                                \
    MEMBER(cupti_context, null_stream, CUpti_ActivityContext3, nullStreamId)                       \
    MEMBER(cupti_context, parent, CUpti_ActivityContext3, parentContextId)                         \
    MEMBER(cupti_context, multiprocessors, CUpti_ActivityContext3, numMultiprocessors)             \
    MEMBER(cupti_context, graphics, CUpti_ActivityContext3, cigMode)                               \
    MEMBER(cupti_context, null_stream, CUpti_ActivityContext, nullStreamId)                        \
    RECORD(cupti_stream, CUpti_ActivityStream)                                                     \
    MEMBER(cupti_stream, stream, CUpti_ActivityStream, streamId)                                   \
    MEMBER(cupti_stream, priority, CUpti_ActivityStream, priority)                                 \
    MEMBER(cupti_stream, flag, CUpti_ActivityStream, flag)                                         \
    MEMBER(cupti_stream, correlation, CUpti_ActivityStream, correlationId)                         \
    RECORD(cupti_device, CUpti_ActivityDevice5)                                                    \
    MEMBER(cupti_device, memory_size, CUpti_ActivityDevice5, globalMemorySize)                     \
    MEMBER(cupti_device, clock_rate, CUpti_ActivityDevice5, coreClockRate)                         \
    MEMBER(cupti_device, max_warps, CUpti_ActivityDevice5, maxWarpsPerMultiprocessor)              \
    MEMBER(cupti_device, block, CUpti_ActivityDevice5, maxBlockDimX)                               \
    MEMBER(cupti_device, grid, CUpti_ActivityDevice5, maxGridDimX)                                 \
    MEMBER(cupti_device, id, CUpti_ActivityDevice5, id)                                            \
    MEMBER(cupti_device, uuid, CUpti_ActivityDevice5, uuid)                                        \
    MEMBER(cupti_device, name, CUpti_ActivityDevice5, name)                                        \
    MEMBER(cupti_device, is_visible, CUpti_ActivityDevice5, isCudaVisible)                         \
    MEMBER(cupti_device, mig_uuid, CUpti_ActivityDevice5, migUuid)                                 \
    MEMBER(cupti_device, numa_node, CUpti_ActivityDevice5, numaId)                                 \
    MEMBER(cupti_device, name, CUpti_ActivityDevice4, name)                                        \
    VALUE(CUPTI_KIND_DEVICE, CUPTI_ACTIVITY_KIND_DEVICE)                                           \
    VALUE(CUPTI_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_CONTEXT)                                         \
    VALUE(CUPTI_KIND_MARKER_DATA, CUPTI_ACTIVITY_KIND_MARKER_DATA)                                 \
    VALUE(CUPTI_KIND_CUDA_EVENT, CUPTI_ACTIVITY_KIND_CUDA_EVENT)                                   \
    VALUE(CUPTI_KIND_STREAM, CUPTI_ACTIVITY_KIND_STREAM)                                           \
    VALUE(CUPTI_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY2)                                         \
    VALUE(CUPTI_KIND_MEMORY_POOL, CUPTI_ACTIVITY_KIND_MEMORY_POOL)                                 \
    VALUE(CUPTI_MEMORY_MANAGED, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED)                                \
    VALUE(CUPTI_MEMORY_ALLOCATED, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION)                 \
    VALUE(CUPTI_MEMORY_RELEASED, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE)                     \
    VALUE(CUPTI_POOL_CREATED, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED)                   \
    VALUE(CUPTI_POOL_DESTROYED, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED)               \
    VALUE(CUPTI_POOL_TRIMMED, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED)                   \
    VALUE(CUPTI_POOL_LOCAL, CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL)                                 \
    VALUE(CUPTI_STREAM_DEFAULT, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT)                         \
    VALUE(CUPTI_STREAM_NON_BLOCKING, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING)               \
    VALUE(CUPTI_COMPUTE_CUDA, CUPTI_ACTIVITY_COMPUTE_API_CUDA)                                     \
    VALUE(CUPTI_OBJECT_DEVICE, CUPTI_ACTIVITY_OBJECT_DEVICE)                                       \
    VALUE(CUPTI_OBJECT_CONTEXT, CUPTI_ACTIVITY_OBJECT_CONTEXT)                                     \
    VALUE(CUPTI_OBJECT_STREAM, CUPTI_ACTIVITY_OBJECT_STREAM)                                       \
    VALUE(CUPTI_FLAG_COLOR_NONE, CUPTI_ACTIVITY_FLAG_MARKER_COLOR_NONE)                            \
    VALUE(CUPTI_FLAG_COLOR_ARGB, CUPTI_ACTIVITY_FLAG_MARKER_COLOR_ARGB)                            \
    VALUE(CUPTI_VALUE_DOUBLE, CUPTI_METRIC_VALUE_KIND_DOUBLE)                                      \
    VALUE(CUPTI_VALUE_UINT64, CUPTI_METRIC_VALUE_KIND_UINT64)                                      \
    VALUE(CUPTI_VALUE_INT64, CUPTI_METRIC_VALUE_KIND_INT64)                                        \
    RECORD(cupti_copy, CUpti_ActivityMemcpy6)                                                      \
    MEMBER(cupti_copy, copy_kind, CUpti_ActivityMemcpy6, copyKind)                                 \
    MEMBER(cupti_copy, source_kind, CUpti_ActivityMemcpy6, srcKind)                                \
    MEMBER(cupti_copy, destination_kind, CUpti_ActivityMemcpy6, dstKind)                           \
    MEMBER(cupti_copy, bytes, CUpti_ActivityMemcpy6, bytes)                                        \
    MEMBER(cupti_copy, end, CUpti_ActivityMemcpy6, end)                                            \
    MEMBER(cupti_copy, device, CUpti_ActivityMemcpy6, deviceId)                                    \
    MEMBER(cupti_copy, correlation, CUpti_ActivityMemcpy6, correlationId)                          \
    MEMBER(cupti_copy, graph_node, CUpti_ActivityMemcpy6, graphNodeId)                             \
    MEMBER(cupti_copy, copy_count, CUpti_ActivityMemcpy6, copyCount)                               \
    MEMBER(cupti_copy, graph_node, CUpti_ActivityMemcpy5, graphNodeId)                             \
    MEMBER(cupti_copy, channel_type, CUpti_ActivityMemcpy5, channelType)                           \
    RECORD(cupti_peer_copy, CUpti_ActivityMemcpyPtoP4)                                             \
    MEMBER(cupti_peer_copy, source_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId)                 \
    MEMBER(cupti_peer_copy, destination_context, CUpti_ActivityMemcpyPtoP4, dstContextId)          \
    MEMBER(cupti_peer_copy, correlation, CUpti_ActivityMemcpyPtoP4, correlationId)                 \
    MEMBER(cupti_peer_copy, graph_node, CUpti_ActivityMemcpyPtoP4, graphNodeId)                    \
    MEMBER(cupti_peer_copy, graph, CUpti_ActivityMemcpyPtoP4, graphId)                             \
    RECORD(cupti_marker, CUpti_ActivityMarker2)                                                    \
    MEMBER(cupti_marker, time, CUpti_ActivityMarker2, timestamp)                                   \
    MEMBER(cupti_marker, id, CUpti_ActivityMarker2, id)                                            \
    MEMBER(cupti_marker, process, CUpti_ActivityMarker2, objectId)                                 \
    MEMBER(cupti_marker, name, CUpti_ActivityMarker2, name)                                        \
    MEMBER(cupti_marker, domain, CUpti_ActivityMarker2, domain)                                    \
    RECORD(cupti_nvtx_data, CUpti_NvtxData)                                                        \
    MEMBER(cupti_nvtx_data, return_value, CUpti_NvtxData, functionReturnValue)                     \
    RECORD(cupti_graph_data, CUpti_GraphData)                                                      \
    MEMBER(cupti_graph_data, exec, CUpti_GraphData, graphExec)                                     \
    RECORD(cupti_module_data, CUpti_ModuleResourceData)                                            \
    MEMBER(cupti_module_data, code, CUpti_ModuleResourceData, pCubin)                              \
    VALUE(CUPTI_CU_INIT_FINISHED, CUPTI_CBID_RESOURCE_CU_INIT_FINISHED)                            \
    VALUE(CUPTI_MODULE_LOADED, CUPTI_CBID_RESOURCE_MODULE_LOADED)                                  \
    VALUE(CUPTI_MODULE_UNLOAD_STARTING, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING)                \
    VALUE(CUPTI_GRAPH_CLONED, CUPTI_CBID_RESOURCE_GRAPH_CLONED)                                    \
    VALUE(CUPTI_GRAPHEXEC_CREATE_STARTING, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING)          \
    RECORD(cupti_resource_data, CUpti_ResourceData)                                                \
    VALUE(CUPTI_CONTEXT_DESTROY_STARTING, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING)            \
    VALUE(CUPTI_STREAM_CREATED, CUPTI_CBID_RESOURCE_STREAM_CREATED)                                \
    VALUE(CUPTI_STREAM_DESTROY_STARTING, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING)              \
    VALUE(CUPTI_GRAPH_CREATED, CUPTI_CBID_RESOURCE_GRAPH_CREATED)                                  \
    VALUE(CUPTI_GRAPH_DESTROY_STARTING, CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING)                \
    VALUE(CUPTI_GRAPHNODE_CREATE_STARTING, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING)          \
    VALUE(CUPTI_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED)                          \
    VALUE(CUPTI_GRAPHNODE_DESTROY_STARTING, CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING)        \
    VALUE(CUPTI_GRAPHEXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED)                          \
    VALUE(CUPTI_GRAPHEXEC_DESTROY_STARTING, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING)        \
    VALUE(CUPTI_GRAPHNODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED)                            \
    RECORD(cupti_subscriber, CUpti_SubscriberParams)                                               \
    MEMBER(cupti_subscriber, old_size, CUpti_SubscriberParams, oldSubscriberSize)                  \
    RECORD(cupti_memset, CUpti_ActivityMemset4)                                                    \
    MEMBER(cupti_memset, value, CUpti_ActivityMemset4, value)                                      \
    MEMBER(cupti_memset, bytes, CUpti_ActivityMemset4, bytes)                                      \
    MEMBER(cupti_memset, correlation, CUpti_ActivityMemset4, correlationId)                        \
    MEMBER(cupti_memset, memory_kind, CUpti_ActivityMemset4, memoryKind)                           \
    MEMBER(cupti_memset, channel_type, CUpti_ActivityMemset4, channelType)                         \
    RECORD(cupti_kernel, CUpti_ActivityKernel10)                                                   \
    MEMBER(cupti_kernel, registers, CUpti_ActivityKernel10, registersPerThread)                    \
    MEMBER(cupti_kernel, start, CUpti_ActivityKernel10, start)                                     \
    MEMBER(cupti_kernel, completed, CUpti_ActivityKernel10, completed)                             \
    MEMBER(cupti_kernel, stream, CUpti_ActivityKernel10, streamId)                                 \
    MEMBER(cupti_kernel, grid, CUpti_ActivityKernel10, gridX)                                      \
    MEMBER(cupti_kernel, block, CUpti_ActivityKernel10, blockX)                                    \
    MEMBER(cupti_kernel, static_shared, CUpti_ActivityKernel10, staticSharedMemory)                \
    MEMBER(cupti_kernel, dynamic_shared, CUpti_ActivityKernel10, dynamicSharedMemory)              \
    MEMBER(cupti_kernel, local_per_thread, CUpti_ActivityKernel10, localMemoryPerThread)           \
    MEMBER(cupti_kernel, correlation, CUpti_ActivityKernel10, correlationId)                       \
    MEMBER(cupti_kernel, grid_id, CUpti_ActivityKernel10, gridId)                                  \
    MEMBER(cupti_kernel, name, CUpti_ActivityKernel10, name)                                       \
    MEMBER(cupti_kernel, submitted, CUpti_ActivityKernel10, submitted)                             \
    MEMBER(cupti_kernel, shared_executed, CUpti_ActivityKernel10, sharedMemoryExecuted)            \
    MEMBER(cupti_kernel, graph_node, CUpti_ActivityKernel10, graphNodeId)                          \
    MEMBER(cupti_kernel, graph, CUpti_ActivityKernel10, graphId)                                   \
    MEMBER(cupti_kernel, cluster, CUpti_ActivityKernel10, clusterX)                                \
    MEMBER(cupti_kernel, local_total_long, CUpti_ActivityKernel10, localMemoryTotal_v2)            \
    MEMBER(cupti_kernel, is_device_launched, CUpti_ActivityKernel10, isDeviceLaunched)             \
    MEMBER(cupti_kernel, graph, CUpti_ActivityKernel9, graphId)                                    \
    MEMBER(cupti_kernel, max_active_clusters, CUpti_ActivityKernel9, maxActiveClusters)            \
    RECORD(cupti_call, CUpti_ActivityAPI)                                                          \
    MEMBER(cupti_call, cbid, CUpti_ActivityAPI, cbid)                                              \
    MEMBER(cupti_call, correlation, CUpti_ActivityAPI, correlationId)                              \
    MEMBER(cupti_call, result, CUpti_ActivityAPI, returnValue)                                     \
    RECORD(cupti_external, CUpti_ActivityExternalCorrelation)                                      \
    MEMBER(cupti_external, external, CUpti_ActivityExternalCorrelation, externalId)                \
    MEMBER(cupti_external, correlation, CUpti_ActivityExternalCorrelation, correlationId)          \
    RECORD(cupti_wait, CUpti_ActivitySynchronization2)                                             \
    MEMBER(cupti_wait, correlation, CUpti_ActivitySynchronization2, correlationId)                 \
    MEMBER(cupti_wait, event, CUpti_ActivitySynchronization2, cudaEventId)                         \
    MEMBER(cupti_wait, result, CUpti_ActivitySynchronization2, returnValue)                        \
    MEMBER(cupti_wait, event, CUpti_ActivitySynchronization, cudaEventId)                          \
    RECORD(cupti_overhead, CUpti_ActivityOverhead3)                                                \
    MEMBER(cupti_overhead, object_kind, CUpti_ActivityOverhead3, objectKind)                       \
    MEMBER(cupti_overhead, process, CUpti_ActivityOverhead3, objectId)                             \
    MEMBER(cupti_overhead, start, CUpti_ActivityOverhead3, start)                                  \
    MEMBER(cupti_overhead, data, CUpti_ActivityOverhead3, overheadData)                            \
    MEMBER(cupti_overhead, end, CUpti_ActivityOverhead, end)                                       \
    RECORD(cupti_graph, CUpti_ActivityGraphTrace2)                                                 \
    MEMBER(cupti_graph, graph, CUpti_ActivityGraphTrace2, graphId)                                 \
    MEMBER(cupti_graph, end_context, CUpti_ActivityGraphTrace2, endContextId)                      \
    RECORD(cupti_callback_data, CUpti_CallbackData)                                                \
    MEMBER(cupti_callback_data, return_value, CUpti_CallbackData, functionReturnValue)             \
    MEMBER(cupti_callback_data, context, CUpti_CallbackData, context)                              \
    MEMBER(cupti_callback_data, correlation_data, CUpti_CallbackData, correlationData)             \
    MEMBER(cupti_callback_data, correlation, CUpti_CallbackData, correlationId)                    \
    VALUE(CUPTI_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY)                                           \
    VALUE(CUPTI_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET)                                           \
    VALUE(CUPTI_KIND_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL)                                           \
    VALUE(CUPTI_KIND_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER)                                           \
    VALUE(CUPTI_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME)                                         \
    VALUE(CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)                     \
    VALUE(CUPTI_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD)                                       \
    VALUE(CUPTI_KIND_NAME, CUPTI_ACTIVITY_KIND_NAME)                                               \
    VALUE(CUPTI_KIND_MARKER, CUPTI_ACTIVITY_KIND_MARKER)                                           \
    VALUE(CUPTI_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2)                                         \
    VALUE(CUPTI_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)                         \
    VALUE(CUPTI_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)               \
    VALUE(CUPTI_KIND_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_GRAPH_TRACE)                                 \
    VALUE(CUPTI_COPY_HTOD, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD)                                        \
    VALUE(CUPTI_COPY_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH)                                        \
    VALUE(CUPTI_COPY_DTOD, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD)                                        \
    VALUE(CUPTI_COPY_PTOP, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP)                                        \
    VALUE(CUPTI_FLAG_MARKER_INSTANTANEOUS, CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS)               \
    VALUE(CUPTI_FLAG_MARKER_START, CUPTI_ACTIVITY_FLAG_MARKER_START)                               \
    VALUE(CUPTI_FLAG_MARKER_END, CUPTI_ACTIVITY_FLAG_MARKER_END)                                   \
    VALUE(CUPTI_DOMAIN_NVTX, CUPTI_CB_DOMAIN_NVTX)                                                 \
    VALUE(CUPTI_COPY_HTOH, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH)                                        \
    VALUE(CUPTI_MEMORY_PAGEABLE, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE)                              \
    VALUE(CUPTI_MEMORY_PINNED, CUPTI_ACTIVITY_MEMORY_KIND_PINNED)                                  \
    VALUE(CUPTI_MEMORY_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE)                                  \
    VALUE(CUPTI_SYNC_EVENT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE)                 \
    VALUE(CUPTI_SYNC_STREAM_WAIT_EVENT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT)     \
    VALUE(CUPTI_SYNC_STREAM, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE)               \
    VALUE(CUPTI_SYNC_CONTEXT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE)             \
    VALUE(CUPTI_OVERHEAD_BUFFER_FLUSH, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH)                 \
    VALUE(CUPTI_OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD)                                       \
    VALUE(CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API)                                         \
    VALUE(CUPTI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API)                                       \
    VALUE(CUPTI_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE)                                         \
    VALUE(CUPTI_DOMAIN_SYNCHRONIZE, CUPTI_CB_DOMAIN_SYNCHRONIZE)                                   \
    VALUE(CUPTI_DOMAINS, CUPTI_CB_DOMAIN_SIZE)                                                     \
    VALUE(CUPTI_EXIT, CUPTI_API_EXIT)                                                              \
    VALUE(CUPTI_ERROR_INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER)                            \
    VALUE(CUPTI_ERROR_OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY)                                    \
    VALUE(CUPTI_ERROR_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED)                            \
    VALUE(CUPTI_ERROR_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED)                                \
    VALUE(CUPTI_ERROR_QUEUE_EMPTY, CUPTI_ERROR_QUEUE_EMPTY)                                        \
    VALUE(CUPTI_ERROR_INVALID_STREAM, CUPTI_ERROR_INVALID_STREAM)                                  \
    VALUE(CUPTI_ERROR_INVALID_KIND, CUPTI_ERROR_INVALID_KIND)                                      \
    VALUE(CUPTI_ERROR_NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED)                                    \
    VALUE(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS,                                         \
          CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS)                                         \
    VALUE(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,                                          \
          CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)

/* A number and where it stands in the list. */
struct number {
    const char *name;
    unsigned long value;
};

extern const struct number own_numbers[], nvidia_numbers[];
extern const unsigned own_count, nvidia_count;
