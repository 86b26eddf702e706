/* SPDX-License-Identifier: Apache-2.0 */
/* The export table of profilers (profiler_interface.h). */
#pragma once

#include "profiler_interface.h"

extern const CUuuid profile_interface_id;
extern const struct profiler_interface profile_interface;
