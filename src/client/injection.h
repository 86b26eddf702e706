/* SPDX-License-Identifier: Apache-2.0 */
/* The library of a tool that a CUDA driver loads into the program. */
#pragma once

/* Loads the library that CUDA_INJECTION64_PATH names, and calls its InitializeInjection(): the
 * first time in a process. The caller holds no lock, since that function may call the driver. */
void injection_load(void);
