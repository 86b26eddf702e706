/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code. An image is what the program handed over; a module is an image loaded on a device; a
 * library is an image with modules made on demand, and a kernel is to a function what a library is
 * to a module.
 */
#ifndef FUNNEL_CLIENT_MODULE_H
#define FUNNEL_CLIENT_MODULE_H

#include "client_context.h"

#define FUNCTION_ATTRIBUTES 16

/* The bytes, in a sealed memfd that can be sent again for another device. */
struct image {
    int fd;
    uint64_t size;
    uint64_t number;       /* the server's, which has lent the memfd; 0 = it is our own */
    const void *wrapper;   /* the program's, for as long as inputs may be taken from it */
    struct image *inputs;  /* what it was linked from, once a driver has wanted that; or NULL */
    uint32_t options_size; /* pairs of u64: the numeric JIT options */
    unsigned char options[512];
};

struct library;

struct module {
    uint64_t handle;
    struct context *context;
    struct library *library; /* NULL = loaded by cuModuleLoad* */
    struct image image;      /* of such a one; else the library's is used */
    bool has_state;          /* which is lost with the server */
    struct list functions;   /* under client->lock, as the rest */
    struct list offered;     /* functions that nobody has asked for: see module_function.c */
    uint32_t next_kernel;    /* which the server is to tell of next */
    struct list globals;
    struct list managed; /* struct managed_variable */
    struct list link;    /* context->modules, or library->resting */
};

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

#define KERNEL_CACHE 8

struct kernel {
    uint64_t handle;
    struct library *library;
    char *name;
    uint64_t name_hash;
    uint64_t functions[KERNEL_CACHE]; /* handles of its functions, found last; atomic */
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

/* Where the log of the compiler goes: what the JIT options of a call asked for. */
struct jit_log {
    char *text;
    unsigned capacity;
    unsigned *ret_size; /* where the option's value is to be replaced by the size */
};

struct jit_options {
    struct jit_log info, error;
    uint32_t size;
    unsigned char pairs[512];
};

/* ---- image.c ---- */

/* Sorts options into those that travel and those that are buffers here. */
CUresult jit_options_read(struct jit_options *options, unsigned count, CUjit_option *names,
                          void **values);

CUresult image_init(struct image *image, const void *code, const struct jit_options *options);
void image_fini(struct image *image);

/* What separately compiled code was linked from, for a driver that has no use for the image. It is
 * gathered when it is first asked for. NULL when there is nothing. One caller at a time. */
struct image *image_inputs(struct image *image);

/* The program's code may be gone from now on. */
void image_keep_inputs(struct image *image);

/* Another server has none of its images. */
void image_forget_server(struct image *image);

/* Another one of the same bytes. */
CUresult image_copy(const struct image *image, struct image *ret_image);

/* For cuModuleLoad and cuLibraryLoadFromFile: the whole file, NUL behind it. */
CUresult image_read_file(const char *path, void **ret_bytes);

/* ---- module.c ---- */

/* Loads an image, of the library if there is one, on the context's device. `options` may be NULL:
 * nobody wants the log. */
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

/* ---- module_function.c ---- */

/* The function of that name; asked of the server once, if at all. */
CUresult module_function(struct module *module, const char *name, struct function **ret_function);
void function_destroy(struct function *function);

/* Finds it again in a module that has been loaded again. */
CUresult function_replay(const struct function *function);

/* What was offered of a module that is to be loaded again. */
void module_forget_offers(struct module *module);

/* Names are long and begin alike, so lists are searched by this first. */
uint64_t kernel_name_hash(const char *name);

/* ---- library.c ---- */

/* Another server has none of its images. */
void library_forget_server(struct library *library);

/* The library's module in a context, loaded if it is not there yet. */
CUresult library_module(struct library *library, struct context *context,
                        struct module **ret_module);
struct kernel *kernel_lookup(CUkernel handle);

/* The program has asked a module for a managed variable. False when the library has others already:
 * then they have variables of their own. */
bool library_begin_managed(struct library *library, const struct module *module);

/* A module of the library that is in a context, if there is one. */
struct module *library_active_module(struct library *library);

/* The context in which to ask about a library when there is no current one. */
struct context *library_context(void);

CUresult kernel_function(struct kernel *kernel, struct context *context,
                         struct function **ret_function);

/* ---- function.c ---- */

/* What a CUfunction means in a context; a CUkernel is one, too. */
CUresult function_resolve(struct context *context, CUfunction handle,
                          struct function **ret_function);

/* context_enter() and function_resolve() in one. */
CUresult function_enter(CUfunction handle, struct function **ret_function);

#endif
