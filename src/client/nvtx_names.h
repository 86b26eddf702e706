/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a program gives to its threads, devices, contexts and streams, for a profiler. */
#pragma once

#include "nvtx_abi.h"

void nvtx_names_replace(const struct nvtx_callbacks *callbacks);
