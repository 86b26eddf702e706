/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: PTX text, parsed and checked. A module is immutable and belongs to no context; an
 * instance is a module with memory of its own, one a context.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sg_launch.h"

struct sg_module;

enum sg_variable_space {
    SG_VARIABLE_GLOBAL,
    SG_VARIABLE_CONST,
};

enum sg_reference {
    SG_NO_REFERENCE,
    SG_TEXTURE_REFERENCE,
    SG_SURFACE_REFERENCE,
};

struct sg_variable {
    const char *name;
    uint64_t size;  /* bytes */
    uint32_t align; /* bytes, a power of two */
    enum sg_variable_space space;
    enum sg_reference reference; /* a reference's 8 bytes are the number of its object, or 0 */
    bool is_extern;              /* declared, not defined: bind it to another module's variable */
    bool is_managed;             /* .attribute(.managed): host and device share it */
};

/*
 * Parses PTX text of `size` bytes, a terminating NUL not counted; the text is not kept. sm_target
 * is the device's, 90 for sm_90. NULL = failure: *ret_result says why as CUDA would, and `log` of
 * log_size bytes, or NULL, gets messages with line numbers. The caller owns the first reference.
 */
struct sg_module *sg_module_load(const char *ptx, size_t size, int sm_target, char *log,
                                 size_t log_size, CUresult *ret_result);
/* Gives the caller's reference back; NULL is allowed. Instances and running grids hold references,
 * so a module or instance lives until the last one ends. */
void sg_module_unref(struct sg_module *module);

/* Variables and kernels have numbers from 0 to below their count, and live as long as the module.
 * Any thread may ask. */
unsigned sg_module_variable_count(const struct sg_module *module);
const struct sg_variable *sg_module_variable(const struct sg_module *module, unsigned index);
/* The index, or -ENOENT. Variables declared in the body of a function are not found by name. */
int sg_module_find_variable(const struct sg_module *module, const char *name);

unsigned sg_module_kernel_count(const struct sg_module *module);
const struct sg_kernel_info *sg_module_kernel(const struct sg_module *module, unsigned index);
int sg_module_find_kernel(const struct sg_module *module, const char *name); /* index or -ENOENT */

/* ---- Instances: a module with memory ---- */

struct sg_instance;

/* Its variables have no memory yet. It holds a reference of the module; the caller owns the first
 * of the instance. NULL = out of memory. */
struct sg_instance *sg_instance_create(struct sg_module *module);

/* Gives the caller's reference back; NULL is allowed. The memory of the variables stays the
 * caller's. */
void sg_instance_unref(struct sg_instance *instance);

/* Gives variable `index` its memory, which must be at least its size. All must be bound before
 * initialize, and one thread at a time does both. */
void sg_instance_bind(struct sg_instance *instance, unsigned index, uint64_t address);

/* Of the memory that was given to variable `index`; 0 = none yet. */
uint64_t sg_instance_address(const struct sg_instance *instance, unsigned index);

/* The same with memory that another instance has initialized: its contents stay. */
void sg_instance_share(struct sg_instance *instance, unsigned index, uint64_t address);

/*
 * Writes every variable's initial value (zeros where the PTX gives none) with the addresses of
 * other variables and functions resolved, and builds the kernels. Variables that are extern are
 * left alone.
 */
CUresult sg_instance_initialize(struct sg_instance *instance, char *log, size_t log_size);
