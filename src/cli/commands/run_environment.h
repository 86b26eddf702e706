/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environment variables by which the program of `funnel run` loads libraries of this installation.
 * What an outer `funnel run` has put into the lists is replaced.
 */
#pragma once

#include <stdbool.h>

/* Which libcuda.so.1 comes first. */
enum run_driver {
    RUN_DRIVER_AS_IS, /* that of the machine */
    RUN_DRIVER_FUNNEL,
    RUN_DRIVER_SOFT,
};

struct run_libraries {
    enum run_driver driver;
    bool nvml;      /* libnvidia-ml.so.1 */
    bool profilers; /* libcupti.so of CUDA 12 and 13 */
};

/* Puts the libraries before all others of their names, for users that link them and for dlopen().
 * Returns 0, or 1 after an error message. */
int run_environment_put_first(const struct run_libraries *libraries);

/* Has NVML show the software GPU, also on a machine with NVIDIA's library. 0, or 1 after an error
 * message. */
int run_environment_show_soft(void);

/* Names CUPTI's folder for Triton's profiler, which opens it there and nowhere else. 0, or 1 after
 * an error message. */
int run_environment_name_cupti(void);

/* Has the program's NVTX ranges recorded for `funnel trace`. The program's own profiler takes them
 * instead, if it asks. 0 or -1, without a message. */
int run_environment_record_ranges(void);
