/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: images loaded on one device. */
#pragma once

#include "client_context.h"
#include "client_image.h"

struct library;

struct module {
    uint64_t handle;
    struct context *context;
    struct library *library; /* NULL = loaded by cuModuleLoad* */
    struct image image;      /* of such a one; else the library's is used */
    bool has_state;          /* which is lost with the server */
    struct list functions;   /* under client->lock, as the rest */
    struct list offered;  /* functions that the program has not asked for: see module_function.c */
    uint32_t next_kernel; /* of the kernels, the first that the server has not described yet */
    struct list globals;
    struct list managed; /* of managed variables */
    struct list link;    /* context->modules, or library->resting */
};

/* Loads an image, of the library if there is one, on the context's device. `options` may be NULL
 * when the log is not wanted. */
CUresult module_load(struct context *context, const struct image *image,
                     const struct jit_options *options, struct library *library,
                     struct module **ret_module);

/* The same as another one of its library, for another device: they share managed variables. */
CUresult module_join(struct context *context, const struct module *twin,
                     struct module **ret_module);
void module_unload(struct module *module);
void module_unload_all(struct context *context);

/* Loads it again, with another server. */
CUresult module_replay(struct module *module);

/* Takes a module out of its context and keeps it: the program has the addresses of its managed
 * variables, and will use its library again. */
void module_rest(struct module *module);

/* One that has rested goes on in a context. */
CUresult module_wake(struct module *module, struct context *context);

/* Where a variable is and how large; asked for either or both. */
CUresult module_global(struct module *module, const char *name, bool managed_only,
                       CUdeviceptr *ret_address, size_t *ret_size);
struct module *module_lookup(CUmodule handle);

/* How many kernels a module has, and the names of the first `count`, each for the caller to free.
 */
CUresult module_kernel_names(struct module *module, char **names, unsigned count,
                             unsigned *ret_total);
