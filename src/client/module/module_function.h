/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: kernels of a module, and what a launch needs to know of each. */
#pragma once

#include "client_context.h"

#define FUNCTION_ATTRIBUTES 16

struct kernel;
struct module;

struct function {
    uint64_t handle; /* 0 = still only offered */
    struct module *module;
    uint32_t number;       /* the server's, while it is offered */
    struct kernel *kernel; /* NULL = not of a library */
    char *name;
    uint64_t name_hash;
    int32_t attributes[FUNCTION_ATTRIBUTES];
    uint32_t param_count, params_size;
    uint32_t *layout; /* offset and size of each parameter */
    bool has_gaps;    /* between them */
    struct list link;
};

/* The function of that name; asked of the server once, if at all. */
CUresult module_function(struct module *module, const char *name, struct function **ret_function);
void function_destroy(struct function *function);

/* Finds it again in a module that has been loaded again. */
CUresult function_replay(const struct function *function);

/* What was offered of a module that is to be loaded again. */
void module_forget_offers(struct module *module);

/* Names are long and begin alike, so lists are searched by this first. */
uint64_t kernel_name_hash(const char *name);
