/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of the software GPU, from the first nvmlInit() to the last nvmlShutdown(): they do
 * not change meanwhile. A handle is the address of a device, which stays the same in all the life
 * of a process. Results are of enum nvml_result. */
#pragma once

#include "nvml_facts.h"

struct soft_gpu {
    struct server_device facts;
    uint32_t cuda_version;
};

/* nvmlInit() and its like. The first one has the daemon start a server where none runs. */
int soft_init(void);
int soft_init_with_flags(unsigned flags);
int soft_shutdown(void);

unsigned soft_gpu_count(void);
const struct soft_gpu *soft_gpu_at(unsigned index); /* NULL behind the last */

/* Whether a call is made in time, and `argument`, which it needs, is there. */
int soft_check_initialized(const void *argument);

/* The same, and the device of a handle. */
int soft_check_device(nvml_device device, const void *argument, const struct soft_gpu **ret_gpu);

/* Called around fork(), by the thread that forks. */
void soft_before_fork(void);
void soft_after_fork(void);
