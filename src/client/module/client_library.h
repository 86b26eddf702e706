/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries: images with modules that are loaded on demand. A kernel is to a function what a
 * library is to a module.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "client_image.h"
#include "client_module.h"
#include "module_function.h"

#define KERNEL_CACHE 8

struct kernel {
    uint64_t handle;
    struct library *library;
    char *name;
    uint64_t name_hash;
    _Atomic uint64_t functions[KERNEL_CACHE]; /* handles of its functions, found last; atomic */
    struct list link;
};

struct library {
    uint64_t handle;
    struct image image;
    pthread_mutex_t load_lock; /* one load at a time, so that each module is made once */
    bool managed;              /* its modules share managed variables; under the load lock */
    struct list kernels;       /* under client->lock, as the next */
    struct list resting;       /* modules with managed variables whose context has ended */
};

/* Another server has none of its images. */
void library_forget_server(struct library *library);

/* The library's module in a context, loaded if it is not there yet; then it waits for the server
 * and returns its errors. Takes the load lock. */
CUresult library_module(struct library *library, struct context *context,
                        struct module **ret_module);

/* The kernel behind a handle, NULL when there is none. Takes no lock. */
struct kernel *kernel_lookup(CUkernel handle);

/* The program asks a module for a managed variable. False when the library has other modules
 * already, which have variables of their own. */
bool library_begin_managed(struct library *library, const struct module *module);

/* A module of the library that is in a context, NULL when there is none. */
struct module *library_active_module(struct library *library);

/* The context in which to ask about a library: the current one, or else a primary one. Never NULL.
 */
struct context *library_context(void);

/* The function of a kernel in a context. Loads the library there if need be, and then waits for the
 * server. */
CUresult kernel_function(struct kernel *kernel, struct context *context,
                         struct function **ret_function);

/* The function that a handle means in a context. Programs pass a CUkernel as CUfunction, too.
 * CUDA_ERROR_INVALID_HANDLE, or the error of loading its module. */
CUresult function_resolve(struct context *context, CUfunction handle,
                          struct function **ret_function);

/* context_enter() and function_resolve() in one. */
CUresult function_enter(CUfunction handle, struct function **ret_function);
