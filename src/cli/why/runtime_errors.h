/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the CUDA runtime whose names do not follow from those of the driver. */
#pragma once

/* The number of "cudaErrorMemoryAllocation", in any case; 0 for a name that is none of these. */
int runtime_error_of_name(const char *name);

/* The name of an error that only the runtime has, such as 98; else NULL. */
const char *runtime_error_name(int error);
