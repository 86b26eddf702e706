/* SPDX-License-Identifier: Apache-2.0 */
/* See cuda_stream_attributes.h. */
#include "cuda_stream_attributes.h"

#include <string.h>

bool cuda_stream_attribute_exists(CUstreamAttrID attribute)
{
    switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return true;
    default:
        return false;
    }
}

static bool is_possible(CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
    switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        return value->syncPolicy >= CU_SYNC_POLICY_AUTO &&
               value->syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return (unsigned)value->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return value->nvlinkUtilCentricScheduling <= 1;
    default:
        return true;
    }
}

CUresult cuda_stream_attribute_set(struct cuda_stream_attributes *attributes,
                                   CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
    if (!cuda_stream_attribute_exists(attribute) || !is_possible(attribute, value))
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)
        attributes->window = value->accessPolicyWindow;
    else if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
        attributes->policy = value->syncPolicy;
    else if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
        attributes->domains = value->memSyncDomainMap;
    else if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)
        attributes->domain = value->memSyncDomain;
    else if (attribute == CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING)
        attributes->nvlink = value->nvlinkUtilCentricScheduling;
    return CUDA_SUCCESS;
}

CUresult cuda_stream_attribute_get(const struct cuda_stream_attributes *attributes,
                                   CUstreamAttrID attribute, CUstreamAttrValue *ret_value)
{
    if (!cuda_stream_attribute_exists(attribute))
        return CUDA_ERROR_INVALID_VALUE;
    memset(ret_value, 0, sizeof(*ret_value));
    if (attribute == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)
        ret_value->accessPolicyWindow = attributes->window;
    else if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
        ret_value->syncPolicy = attributes->policy ? attributes->policy : CU_SYNC_POLICY_AUTO;
    else if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
        ret_value->memSyncDomainMap = attributes->domains;
    else if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)
        ret_value->memSyncDomain = attributes->domain;
    else if (attribute == CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING)
        ret_value->nvlinkUtilCentricScheduling = attributes->nvlink;
    return CUDA_SUCCESS;
}
