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
    uint64_t size;
    uint32_t align;
    enum sg_variable_space space;
    enum sg_reference reference; /* a reference's 8 bytes are the number of its object, or 0 */
    bool is_extern;              /* declared, not defined: bind it to another module's variable */
    bool is_managed;             /* .attribute(.managed): host and device share it */
};

/*
 * size counts the text without a terminating NUL. On failure NULL: *ret_result says why as CUDA
 * would, log (may be NULL) holds messages with line numbers. sm_target is the device's, 90 for
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
 * initialize. */
void sg_instance_bind(struct sg_instance *instance, unsigned index, uint64_t address);
uint64_t sg_instance_address(const struct sg_instance *instance, unsigned index);

/* The same with memory that another instance has initialized: its contents stay. */
void sg_instance_share(struct sg_instance *instance, unsigned index, uint64_t address);

/*
 * Writes every variable's initial value (zeros where the PTX gives none) with the addresses of
 * other variables and functions resolved, and builds the kernels. Variables that are extern are
 * left alone.
 */
CUresult sg_instance_initialize(struct sg_instance *instance, char *log, size_t log_size);
