/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and instances inside.
 */
#pragma once

#include <pthread.h>

#include "program.h"
#include "sg_module.h"

struct kernel {
    const struct ptx_function *function;
    struct sg_kernel_info info;
};

struct sg_module {
    uint32_t references;
    struct ptx_module *ptx;
    struct sg_variable *variables;     /* .global and .const */
    const struct ptx_symbol **symbols; /* of each */
    unsigned variable_count;
    uint32_t *variable_of; /* by the symbol's index: which variable, or UINT32_MAX; those of
                              functions' bodies follow the module's */
    uint32_t *locals_of;   /* by function: where those of its body begin in variable_of */
    struct kernel *kernels;
    unsigned kernel_count;
};

struct sg_instance {
    uint32_t references;
    struct sg_module *module;
    uint64_t *addresses;       /* by variable */
    bool *shared;              /* likewise: initialized already */
    struct program **programs; /* by kernel, built when first needed */
    pthread_mutex_t lock;
};

/* The kernel's program; NULL with a message in the log. */
const struct program *instance_program(struct sg_instance *instance, unsigned kernel, char *log,
                                       size_t log_size, CUresult *ret_result);
