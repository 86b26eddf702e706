/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a stream that are hints: kept and told, and never looked at otherwise. The
 * priority, which is an attribute as well, is the stream's own. */
#pragma once

#include <stdbool.h>

#include "cuda_abi.h"

/* Zeroed: the attributes of a new stream. */
struct cuda_stream_attributes {
    CUaccessPolicyWindow window;
    CUsynchronizationPolicy policy; /* 0: none was set */
    CUlaunchMemSyncDomainMap domains;
    bool has_domains; /* false: the default */
    CUlaunchMemSyncDomain domain;
};

/* Whether streams have it. */
bool cuda_stream_attribute_exists(CUstreamAttrID attribute);

/* CUDA_ERROR_INVALID_VALUE for an attribute that streams do not have, or a value that it cannot
 * have. The priority is accepted, and left to the caller. */
CUresult cuda_stream_attribute_set(struct cuda_stream_attributes *attributes,
                                   CUstreamAttrID attribute, const CUstreamAttrValue *value);
CUresult cuda_stream_attribute_get(const struct cuda_stream_attributes *attributes,
                                   CUstreamAttrID attribute, CUstreamAttrValue *ret_value);
