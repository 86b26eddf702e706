/* SPDX-License-Identifier: Apache-2.0 */
/* See cuda_launch_attributes.h. */
#include "cuda_launch_attributes.h"

#include "cuda_graph.h"

#define CARVEOUT_MAX 100u

bool cuda_mem_sync_map_is_possible(CUlaunchMemSyncDomainMap map)
{
    return map.default_ < CUDA_MEM_SYNC_DOMAINS && map.remote < CUDA_MEM_SYNC_DOMAINS;
}

static bool is_possible(const CUlaunchAttribute *attribute)
{
    const CUlaunchAttributeValue *value = &attribute->value;

    switch (attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: /* only streams have it */
        return false;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return (unsigned)value->clusterSchedulingPolicyPreference <=
               CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return (unsigned)value->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        return cuda_mem_sync_map_is_possible(value->memSyncDomainMap);
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return (unsigned)value->sharedMemCarveout <= CARVEOUT_MAX;
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return value->nvlinkUtilCentricScheduling <= 1;
    default:
        return launch_attribute_exists(attribute->id);
    }
}

static CUresult check_event_flags(int flags, bool captured)
{
    if (flags & ~CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!flags)
        return CUDA_SUCCESS;
    return captured ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult cuda_launch_attribute_check(const CUlaunchAttribute *attribute, bool captured)
{
    const CUlaunchAttributeValue *value = &attribute->value;

    switch (attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        return check_event_flags(value->programmaticEvent.flags, captured);
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        return check_event_flags(value->launchCompletionEvent.flags, captured);
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return captured && !value->deviceUpdatableKernelNode.deviceUpdatable
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_NOT_SUPPORTED;
    default:
        return is_possible(attribute) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
}

bool cuda_launch_attribute_event(const CUlaunchAttribute *attribute, CUevent *ret_event)
{
    switch (attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        *ret_event = attribute->value.programmaticEvent.event;
        return true;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        *ret_event = attribute->value.launchCompletionEvent.event;
        return true;
    default:
        return false;
    }
}

CUgraphEdgeData cuda_launch_attribute_edge(const CUlaunchAttribute *attribute)
{
    bool completion = attribute->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    bool begun = completion || attribute->value.programmaticEvent.triggerAtBlockStart;

    return (CUgraphEdgeData){
        .from_port =
            begun ? CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER : CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
        .type =
            completion ? CU_GRAPH_DEPENDENCY_TYPE_DEFAULT : CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC,
    };
}
