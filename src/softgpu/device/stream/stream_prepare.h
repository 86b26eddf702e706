/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions, stream memory operations and events. They are work that is in no stream yet: an
 * operation which a graph's launch begins when its turn comes. To make one and throw it away is to
 * check the work.
 */
#pragma once

#include "soft.h"
#include "soft_stream.h"

struct operation;

CUresult mem_ops_prepare_locked(unsigned count, const CUstreamBatchMemOpParams *ops,
                                struct operation **ret_operation);
