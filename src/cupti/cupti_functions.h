/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's functions, but for those of callbacks and the unsupported ones. What they do stands in
 * CUPTI's documentation; how they differ, in docs/profiling.md. */
#pragma once

#include "cupti_abi.h"

CUPTI_EXPORT CUptiResult cuptiActivityRegisterCallbacks(cupti_request_buffer request,
                                                        cupti_complete_buffer complete);
CUPTI_EXPORT CUptiResult cuptiActivityEnable(uint32_t kind);
CUPTI_EXPORT CUptiResult cuptiActivityDisable(uint32_t kind);
CUPTI_EXPORT CUptiResult cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable);
CUPTI_EXPORT CUptiResult cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable);
CUPTI_EXPORT CUptiResult cuptiActivityFlush(CUcontext context, uint32_t stream, uint32_t flags);
CUPTI_EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flags);
CUPTI_EXPORT CUptiResult cuptiActivityFlushPeriod(uint32_t period_ms);
CUPTI_EXPORT CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable);
CUPTI_EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                                           size_t *ret_dropped);
CUPTI_EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_size,
                                                    void **record);
CUPTI_EXPORT CUptiResult cuptiGetTimestamp(uint64_t *ret_time);
CUPTI_EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(cupti_timestamp clock);
CUPTI_EXPORT CUptiResult cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id);
CUPTI_EXPORT CUptiResult cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t *ret_id);
CUPTI_EXPORT CUptiResult cuptiActivitySetAttribute(uint32_t attribute, size_t *size,
                                                   const void *value);
CUPTI_EXPORT CUptiResult cuptiActivityGetAttribute(uint32_t attribute, size_t *size, void *value);
CUPTI_EXPORT CUptiResult cuptiFinalize(void);

CUPTI_EXPORT CUptiResult cuptiGetVersion(uint32_t *ret_version);
CUPTI_EXPORT CUptiResult cuptiGetContextId(CUcontext context, uint32_t *ret_id);
CUPTI_EXPORT CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *ret_id);
CUPTI_EXPORT CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *ret_id);
CUPTI_EXPORT CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread,
                                            uint32_t *ret_id);
CUPTI_EXPORT CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *ret_id);
CUPTI_EXPORT CUptiResult cuptiGetGraphExecId(CUgraphExec graph, uint32_t *ret_id);
CUPTI_EXPORT CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *ret_id);
CUPTI_EXPORT CUptiResult cuptiSetThreadIdType(uint32_t type);
CUPTI_EXPORT CUptiResult cuptiGetThreadIdType(uint32_t *ret_type);
CUPTI_EXPORT CUptiResult cuptiDeviceSupported(CUdevice device, int *ret_supported);
CUPTI_EXPORT CUptiResult cuptiComputeCapabilitySupported(int major, int minor, int *ret_supported);
CUPTI_EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char **ret_text);
CUPTI_EXPORT CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **ret_text);
CUPTI_EXPORT CUptiResult cuptiGetLastError(void);
