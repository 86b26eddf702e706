/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code: libraries belong to no context, and a module is a library's instance in one.
 *
 * Every module has a library: cuModuleLoadData makes one of its own, which has no handle. A
 * library gets its instance in a context when something there first needs it.
 *
 * Functions named _locked need soft_lock, the others no lock. Images stay the program's.
 */
#pragma once

#include "cuda_retired.h"
#include "exec.h"
#include "fatbin.h"
#include "soft.h"

struct context;
struct library;
struct memory;
struct module;

struct kernel {
    uint64_t handle; /* 0 until the program asks for it */
    struct library *library;
    unsigned index;
    const struct sg_kernel_info *info;
    int max_dynamic_shared;
    int carveout;
    int non_portable_cluster;
    int cluster[3]; /* of launches that name none; zeros: none */
    int cluster_policy;
    struct cuda_retired *retired; /* what cuParamSet*() and the like have set, or NULL */
};

struct library {
    uint64_t handle; /* 0: the private one of a module */
    struct sg_module *code;
    struct kernel *kernels;
    unsigned kernel_count;
    struct memory **managed; /* by variable; of those that are managed, when a module needed them */
    void *managed_pages;     /* in which these lie, one behind the other */
    struct list modules;
};

struct function {
    uint64_t handle; /* 0 until the program asks for it */
    struct module *module;
    struct kernel *kernel;
};

struct module {
    uint64_t handle; /* 0 until the program asks for it */
    struct library *library;
    struct context *context;
    struct sg_instance *instance;
    struct memory *variables; /* all of them, side by side */
    struct function *functions;
    struct list references; /* reference.h */
    struct list in_library;
    struct list in_context;
};

/* The caller's buffer for errors in its PTX: CU_JIT_ERROR_LOG_BUFFER. */
struct jit_log {
    char *text;
    size_t size;
    size_t *ret_used; /* NULL, or a place among the option values */
};

/* The caller frees it. CUDA_ERROR_NO_BINARY_FOR_GPU, _INVALID_IMAGE, _INVALID_PTX, _NOT_SUPPORTED,
 * _OUT_OF_MEMORY; the log has the reason. */
CUresult library_load(const void *image, const struct jit_log *log, struct library **ret_library);
/* With its modules; nothing that runs may still need it. */
void library_free_locked(struct library *library);

/* The library's instance in the context, made now if it is not there. */
CUresult library_module_locked(struct library *library, struct context *context,
                               struct module **ret_module);
void module_free_locked(struct module *module);
/* Frees its texture references and their objects: none of its kernels runs. */
void module_drop_references_locked(struct module *module);
void modules_drop_context_locked(struct context *context);

/* Address and size in bytes of a variable; CUDA_ERROR_NOT_FOUND. */
CUresult module_variable_locked(struct module *module, const char *name, bool managed_only,
                                uint64_t *ret_address, size_t *ret_size);
/* The variable that contains the address, in the memory of a module's variables. */
bool module_variable_at_locked(const struct memory *variables, uint64_t address,
                               uint64_t *ret_start, uint64_t *ret_size);
/* The handle of a kernel's function, made when it is first asked for. */
CUresult module_function_locked(struct module *module, unsigned index, CUfunction *ret_handle);

/* A function or a kernel, whichever the handle is: kernels may stand for functions everywhere. */
CUresult kernel_find_locked(const void *handle, struct kernel **ret_kernel);
/* And its instance in the context. */
CUresult kernel_resolve_locked(const void *handle, struct context *context,
                               struct kernel **ret_kernel, struct module **ret_module);

struct jit_log jit_log_of(unsigned count, const CUjit_option *options, void **values);
/* The whole of a file and a NUL behind it, for the caller to free. CUDA_ERROR_FILE_NOT_FOUND,
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult file_read(const char *path, char **ret_bytes, size_t *ret_size); /* the size may be NULL */
void jit_log_write(const struct jit_log *log, const char *text);
/* CUDA's error for what fatbin.h gave: -errno. */
CUresult fatbin_result(int error);

/* Checks an input or the output of a linker: all of it must compile. */
CUresult code_check(const struct fatbin_part *part, const struct jit_log *log, bool whole);
