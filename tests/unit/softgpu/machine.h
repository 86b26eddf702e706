/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small machine for tests of the compute core: one space, one engine, one module; launches wait
 * for the end.
 */
#pragma once

#include "unit.h"

#include "exec.h"

struct machine {
    struct sg_space *space;
    struct sg_engine *engine;
    struct sg_module *module;
    struct sg_instance *instance;
    char printed[65536];
    size_t printed_size;
    char message[512];
    char log[1024];
};

/* The text of a file under data/, which the caller frees. */
char *machine_text(const char *file, size_t *ret_size);

/* From a file under data/, or from text. Fails the test if the module cannot be loaded. */
struct machine *machine_create(const char *file);
struct machine *machine_create_from(const char *ptx);
void machine_destroy(struct machine *machine);

/* Zeroed device memory, freed by machine_destroy. */
void *machine_memory(struct machine *machine, size_t size);

/* Launches and waits; params are pointers to the arguments, as for cuLaunchKernel. */
CUresult machine_launch(struct machine *machine, const char *kernel, uint32_t blocks,
                        uint32_t threads, uint32_t dynamic_shared, void **params);
CUresult machine_launch_3d(struct machine *machine, const char *kernel, const uint32_t grid[3],
                           const uint32_t block[3], uint32_t dynamic_shared, void **params);
