/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries: what the driver makes of a module image. Loaded by cuLibraryLoadData, which stalls
 * nobody; cuModuleLoadData stalls every client until the GPU is idle.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "list.h"
#include "loader.h"

#define LIBRARY_LOG_SIZE 4096u
#define LIBRARY_OPTIONS_MAX 32u

struct quiesce;

struct library {
    CUlibrary driver;
    unsigned users;    /* atomic: one for each device on which a client has it */
    struct list link;  /* while retired (retired.h) */
    uint64_t bytes;    /* the same */
    bool may_print;    /* its kernels may print */
    bool may_allocate; /* they may keep memory of the device's own heap */
    unsigned option_count;
    /* The driver may compile long after the load, and then still writes to what it was given there.
     * So options and log live as long as the library. */
    CUjit_option options[LIBRARY_OPTIONS_MAX + 2];
    void *values[LIBRARY_OPTIONS_MAX + 2];
    char log[LIBRARY_LOG_SIZE];
};

/* Pairs of u64, option and value, as a client sends them. NULL when out of memory. */
struct library *library_create(const void *options, uint32_t options_size);

/* Loads a sound image, and compiles at once: whoever asks wants to hear now what is wrong with it.
 * The device's context is current. */
CUresult library_load(struct library *library, struct quiesce *quiesce, const void *image,
                      size_t size);

struct library *library_use(struct library *library);

/* Whether that was the last user, who has to destroy it. */
bool library_put(struct library *library);

/* Waits until all streams are idle, and nobody gets into the driver meanwhile: see quiesce.h. NULL
 * is allowed. */
void library_destroy(struct library *library);
