/* SPDX-License-Identifier: Apache-2.0 */
/* See cuda_stream_attributes.h. */
#include "cuda_stream_attributes.h"

#include <string.h>

#include "cuda_launch_attributes.h"

/* The policy of a stream for which the program has set none. */
#define NO_POLICY ((CUsynchronizationPolicy)-1)

bool cuda_stream_attribute_exists(CUstreamAttrID attribute)
{
    switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
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
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        return cuda_mem_sync_map_is_possible(value->memSyncDomainMap);
    default:
        return true;
    }
}

CUresult cuda_stream_attribute_set(struct cuda_stream_attributes *attributes,
                                   CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
    if (!cuda_stream_attribute_exists(attribute) || !is_possible(attribute, value))
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) {
        attributes->window = value->accessPolicyWindow;
    } else if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) {
        attributes->policy = value->syncPolicy;
    } else if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) {
        attributes->domains = value->memSyncDomainMap;
        attributes->has_domains = true;
    } else if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN) {
        attributes->domain = value->memSyncDomain;
    }
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
        ret_value->syncPolicy = attributes->policy ? attributes->policy : NO_POLICY;
    else if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
        ret_value->memSyncDomainMap =
            attributes->has_domains ? attributes->domains : CUDA_MEM_SYNC_MAP;
    else if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)
        ret_value->memSyncDomain = attributes->domain;
    return CUDA_SUCCESS;
}
