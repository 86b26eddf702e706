/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: images loaded on one device. */
#pragma once

#include <stdatomic.h>

#include "client_context.h"
#include "client_image.h"

struct library;

struct module {
    uint64_t handle;
    struct context *context;
    struct library *library; /* NULL = loaded by cuModuleLoad* */
    struct image image;      /* of such a one; else the library's is used */
    uint32_t state;          /* WIRE_STATE_...: what its kernels keep */
    struct list functions;   /* under client->lock, as the rest */
    struct list prefetched;  /* functions that the program has not asked for: module_function.c */
    _Atomic uint32_t
        next_kernel;        /* of the kernels, the first that the server has not described yet */
    struct list symbols;    /* variables that were asked for: client_symbol.h */
    struct list references; /* reference.h */
    struct list managed;    /* of managed variables */
    struct list link;       /* context->modules, or library->resting */
};

/* Loads an image, of the library if there is one, on the context's device. `options` may be NULL
 * when the log is not wanted. The image is copied. Waits for the server and returns its errors. */
CUresult module_load(struct context *context, const struct image *image,
                     const struct jit_options *options, struct library *library,
                     struct module **ret_module);

/* Loads the module of `twin`'s library for another device: both share managed variables.
 * CUDA_ERROR_NOT_SUPPORTED for the same device. */
CUresult module_join(struct context *context, const struct module *twin,
                     struct module **ret_module);

/* Unloads a module and frees it; the server waits for its work. */
void module_unload(struct module *module);

/* Unloads the modules of a context; modules with managed variables of a library stay. */
void module_unload_all(struct context *context);

/* Loads a module again, with another server. With the library closed. */
CUresult module_replay(struct module *module);

/* Takes a module out of its context and keeps it: the program has the addresses of its managed
 * variables, and will use its library again. */
void module_rest(struct module *module);

/* A module that has rested continues in a context. */
CUresult module_wake(struct module *module, struct context *context);

/* The module behind a handle, NULL when there is none. Takes no lock. */
struct module *module_lookup(CUmodule handle);

/* How many kernels a module has, and the names of the first `count`, each for the caller to free,
 * also after an error. Waits for the server. */
CUresult module_kernel_names(struct module *module, char **names, unsigned count,
                             unsigned *ret_total);
