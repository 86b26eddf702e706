/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: kernels of a module, with the facts that a launch needs. */
#pragma once

#include "client_context.h"
#include "occupancy_cache.h"

#define FUNCTION_ATTRIBUTES 16

struct kernel;
struct module;
struct cuda_retired;

struct function {
    uint64_t handle; /* 0 = prefetched, and not used yet */
    struct module *module;
    uint32_t number;       /* the server's, while it is prefetched */
    struct kernel *kernel; /* NULL = not of a library */
    char *name;
    uint64_t name_hash;
    int32_t attributes[FUNCTION_ATTRIBUTES];
    uint32_t param_count;
    uint32_t params_size; /* in bytes, of all parameters with the gaps between them */
    uint32_t *layout;     /* offset and size of each parameter */
    bool has_gaps;        /* between them */
    struct occupancy_cache occupancy;
    struct list link;
    struct cuda_retired *retired; /* NULL = none: retired_launch.c; plain memory */
};

/* The function of that name. The server is asked the first time, unless it has sent the function
 * before; CUDA_ERROR_NOT_FOUND. */
CUresult module_function(struct module *module, const char *name, struct function **ret_function);

/* Whether the module has a kernel of that name: CUDA_SUCCESS or CUDA_ERROR_NOT_FOUND. The driver
 * loads no kernel for that. `ret_ready`: it is loaded, so module_function() does not wait for the
 * driver.
 */
CUresult module_find_kernel(struct module *module, const char *name, bool *ret_ready);

/* What a profiler says of a kernel; the sizes are bytes. */
struct function_facts {
    uint32_t registers, static_shared, local;
    char *name;
};

/* Of the function behind a wire handle, also after its end if the program was profiled then. The
 * caller frees the name. False when it is not known. */
bool function_find_facts(uint64_t handle, struct function_facts *ret_facts);

/* Forgets functions that have ended; the profiler has, too. */
void function_forget_facts(void);

/* Frees a function that is in no list any more. NULL is allowed. */
void function_destroy(struct function *function);

/* Makes a function again after its module was loaded with another server. CUDA_ERROR_INVALID_IMAGE
 * when its parameters differ. With the library closed. */
CUresult function_replay(const struct function *function);

/* Frees the prefetched functions of a module that is unloaded or loaded again. */
void module_forget_prefetched(struct module *module);

/* A hash of a name. Names are long and begin with the same letters, so lists are searched by the
 * hash first. */
uint64_t kernel_name_hash(const char *name);
