/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The software GPU's compute core: PTX text in, running grids out.
 *
 * A module is immutable and belongs to nobody; an instance is a module with memory of its own (one
 * a context); an engine is the device's virtual SMs. Device addresses are host addresses of this
 * process, and a space says which of them a kernel may touch.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_result.h"

/* ---- Address spaces: what a kernel of a context may touch ---- */

struct sg_space;

enum sg_access {
    SG_READ = 1,
    SG_WRITE = 2,
};

struct sg_space *sg_space_create(void);
void sg_space_destroy(struct sg_space *space);

/* Both may be called while kernels run. Ranges must not overlap: -EEXIST; -ENOENT when there is
 * none. */
int sg_space_add(struct sg_space *space, uint64_t base, uint64_t size, unsigned access);
int sg_space_remove(struct sg_space *space, uint64_t base);

/* Whether [address, address + size) lies inside one range that allows the access. */
bool sg_space_allows(struct sg_space *space, uint64_t address, uint64_t size, unsigned access);

/* How much kernels may allocate with malloc (cuCtxSetLimit); 8 MiB at first. It is freed with the
 * space. */
void sg_space_set_heap_limit(struct sg_space *space, uint64_t bytes);

/* ---- Modules: PTX text, parsed and checked ---- */

struct sg_module;

enum sg_variable_space {
    SG_VARIABLE_GLOBAL,
    SG_VARIABLE_CONST,
};

struct sg_variable {
    const char *name;
    uint64_t size;
    uint32_t align;
    enum sg_variable_space space;
    bool is_extern;  /* declared, not defined: bind it to another module's variable */
    bool is_managed; /* .attribute(.managed): host and device share it */
};

struct sg_param_info {
    uint32_t offset;
    uint32_t size;
};

/* Enough for cuFuncGetAttribute 0..15 and cuFuncGetParamInfo. */
struct sg_kernel_info {
    const char *name;
    uint32_t param_count;
    const struct sg_param_info *params;
    uint32_t params_size;
    uint32_t max_threads_per_block; /* from .maxntid, .reqntid; else 1024 */
    uint32_t required_block[3];     /* .reqntid; zeros: any */
    uint32_t registers;             /* estimate: most values alive at once */
    uint32_t static_shared;
    uint32_t local;       /* bytes a thread, without calls */
    uint32_t const_size;  /* the module's .const variables */
    uint32_t ptx_version; /* 90 for .version 9.0 */
    uint32_t target;      /* 80 for .target sm_80 */
    uint32_t cluster[3];  /* .reqnctapercluster; zeros: none */
};

/*
 * size counts the text without a terminating NUL. On failure NULL: *ret_result says why as CUDA
 * would, log (may be NULL) holds sentences with line numbers. sm_target is the device's, 90 for
 * sm_90.
 */
struct sg_module *sg_module_load(const char *ptx, size_t size, int sm_target, char *log,
                                 size_t log_size, CUresult *ret_result);
/* Instances and running grids hold references: a module or instance lives until the last one ends.
 */
void sg_module_unref(struct sg_module *module);

unsigned sg_module_variable_count(const struct sg_module *module);
const struct sg_variable *sg_module_variable(const struct sg_module *module, unsigned index);
/* The index, or -ENOENT. Variables declared in the body of a function are not found by name. */
int sg_module_find_variable(const struct sg_module *module, const char *name);

unsigned sg_module_kernel_count(const struct sg_module *module);
const struct sg_kernel_info *sg_module_kernel(const struct sg_module *module, unsigned index);
int sg_module_find_kernel(const struct sg_module *module, const char *name); /* index or -ENOENT */

/* ---- Instances: a module with memory ---- */

struct sg_instance;

struct sg_instance *sg_instance_create(struct sg_module *module);
void sg_instance_unref(struct sg_instance *instance);

/* Gives variable `index` its memory, which must be at least its size. All must be bound before
 * initialise. */
void sg_instance_bind(struct sg_instance *instance, unsigned index, uint64_t address);
uint64_t sg_instance_address(const struct sg_instance *instance, unsigned index);

/* The same with memory that another instance has initialised: its contents stay. */
void sg_instance_share(struct sg_instance *instance, unsigned index, uint64_t address);

/*
 * Writes every variable's initial value (zeros where the PTX gives none) with the addresses of
 * other variables and functions resolved, and builds the kernels. Variables that are extern are
 * left alone.
 */
CUresult sg_instance_initialise(struct sg_instance *instance, char *log, size_t log_size);

/* ---- The engine: virtual SMs ---- */

struct sg_engine;

/* Zeros mean: as an H100 has them (threads 2048, blocks 32, shared 228 KiB, registers 65536). */
struct sg_engine_config {
    unsigned sm_count;
    unsigned host_threads; /* 0: as many as CPUs available */
    unsigned threads_per_sm;
    unsigned blocks_per_sm;
    unsigned shared_per_sm;
    unsigned registers_per_sm;
    uint64_t timeout_ms; /* a grid that runs longer ends; 0: none does */
};

#define SG_MAX_SMS 256
#define SG_MAX_CLUSTER 16 /* blocks */

enum sg_print_kind {
    SG_PRINT_OUTPUT, /* device printf */
    SG_PRINT_ERROR,  /* a failed device assert */
};

/* The grid's end. sentence is "" on success; else it names kernel, block, thread, address and PTX
 * line. */
typedef void (*sg_done_fn)(void *user, CUresult result, const char *sentence);
typedef void (*sg_print_fn)(void *user, enum sg_print_kind kind, const char *text, size_t size);

struct sg_launch {
    struct sg_instance *instance;
    unsigned kernel;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3]; /* zeros: as the kernel says, or else of one block */
    uint32_t dynamic_shared;
    const void *params; /* packed as sg_kernel_info says; copied by submit */
    size_t params_size;
    uint64_t sm_mask[SG_MAX_SMS / 64]; /* which virtual SMs may run it; all zero: all */
    int priority;                      /* lower runs first, as CUDA's stream priorities */
    bool cooperative;                  /* all blocks must be resident at once, else 720 */
    uint32_t stack_size;               /* cuCtxSetLimit's stack a thread; 0: 1024 */
    uint64_t grid_id;                  /* %gridid */
    uint64_t workspace;     /* %envreg1:%envreg2, what a cooperative grid meets at; or 0 */
    struct sg_space *space; /* outlives the grid */
    sg_print_fn print;      /* may be NULL; called on engine threads, one call a piece of text */
    sg_done_fn done;        /* called once on an engine thread, and only if submit succeeded */
    void *user;
};

/* Cheap: threads are made by the first launch. */
struct sg_engine *sg_engine_create(const struct sg_engine_config *config);
/* Ends what still runs (done is called with CUDA_ERROR_DEINITIALIZED) and joins the threads. */
void sg_engine_destroy(struct sg_engine *engine);

/* Asynchronous. An error here means that nothing was started and done will not be called. */
CUresult sg_engine_submit(struct sg_engine *engine, const struct sg_launch *launch);

/* Ends every grid that runs in this space, and waits until their done callbacks have returned. */
void sg_engine_abort(struct sg_engine *engine, struct sg_space *space, CUresult result);

/* Blocks of this shape that fit on one SM at once. */
unsigned sg_occupancy(const struct sg_engine *engine, const struct sg_kernel_info *kernel,
                      unsigned block_threads, size_t dynamic_shared);
/* Clusters of so many blocks; a large one has an SM for itself. */
unsigned sg_cluster_occupancy(const struct sg_engine *engine, const struct sg_kernel_info *kernel,
                              unsigned block_threads, size_t dynamic_shared, unsigned cluster_size);
