/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries of tools in CUDA_INJECTION64_PATH, which a driver loads into the program. From any
 * thread. */
#pragma once

#include <stdbool.h>

/* The path that the environment names; NULL: none, or the program runs with more rights than its
 * caller has (secure_getenv). */
const char *driver_tool_path(void);

/* Whether the library is one of NVIDIA's tools, which need NVIDIA's driver in the program: Nsight,
 * compute-sanitizer. Others use CUPTI. */
bool driver_tool_is_nvidias(const char *path);
