/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches:
 * work that is in no stream yet, as an operation which a graph's launch begins when its turn comes.
 * To make one and throw it away is to check the work. Functions named _locked need soft_lock.
 */
#pragma once

#include "graph_model.h"
#include "soft_stream.h"

struct sg_kernel_info;
struct operation;
