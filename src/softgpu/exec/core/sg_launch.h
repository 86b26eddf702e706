/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The needs of a kernel, and the parameters of a launch.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_result.h"
#include "sg_space.h"

struct sg_instance;

/* In the packed parameters, in bytes. */
struct sg_param_info {
    uint32_t offset;
    uint32_t size;
};

/* Enough for cuFuncGetAttribute 0..15 and cuFuncGetParamInfo. */
struct sg_kernel_info {
    const char *name;
    uint32_t param_count;
    const struct sg_param_info *params;
    uint32_t params_size;           /* bytes */
    uint32_t max_threads_per_block; /* from .maxntid, .reqntid; else 1024 */
    uint32_t required_block[3];     /* .reqntid; zeros: any */
    uint32_t registers;             /* estimate: most values alive at once */
    uint32_t static_shared;         /* bytes a block */
    uint32_t local;                 /* bytes a thread, without calls */
    uint32_t const_size;            /* bytes of the module's .const variables */
    uint32_t target;                /* 80 for .target sm_80 */
    uint32_t cluster[3];            /* .reqnctapercluster; zeros: none */
    bool prints;                    /* it calls vprintf, or a function that does */
    bool allocates;                 /* the same of malloc */
};

#define SG_MAX_SMS 256
#define SG_MAX_CLUSTER 16 /* blocks */

enum sg_print_kind {
    SG_PRINT_OUTPUT, /* device printf */
    SG_PRINT_ERROR,  /* a failed device assert */
};

/* The grid's end. message is "" on success; else it names kernel, block, thread, address and PTX
 * line. */
typedef void (*sg_done_fn)(void *user, CUresult result, const char *message);
/* A thread of the kernel calls cudaGraphSetConditional. */
typedef void (*sg_condition_fn)(void *user, uint64_t handle, uint32_t value);
/* The output of one printf call of one thread, as a driver writes it: in several parts. Each part
 * ends behind a conversion, or is the rest. */
struct sg_text {
    const char *bytes;
    const uint16_t *part_sizes;
    unsigned part_count;
};
typedef void (*sg_print_fn)(void *user, enum sg_print_kind kind, const struct sg_text *text);

struct sg_launch {
    struct sg_instance *instance; /* the grid holds a reference */
    unsigned kernel;              /* its number in the module */
    uint32_t grid[3];             /* blocks */
    uint32_t block[3];            /* threads */
    uint32_t cluster[3];          /* zeros: as the kernel says, or else of one block */
    uint32_t dynamic_shared;      /* bytes a block */
    const void *params;           /* packed as sg_kernel_info says; copied by submit */
    size_t params_size;
    uint64_t sm_mask[SG_MAX_SMS / 64]; /* which virtual SMs may run it; all zero: all */
    int priority;                      /* lower runs first, as CUDA's stream priorities */
    bool cooperative;                  /* all blocks must be resident at once, else 720 */
    uint32_t stack_size;               /* bytes a thread, of cuCtxSetLimit; 0: 1024 */
    uint64_t grid_id;                  /* %gridid */
    uint64_t workspace;            /* %envreg1:%envreg2, what a cooperative grid meets at; or 0 */
    struct sg_space *space;        /* outlives the grid */
    uint64_t owner;                /* whose heap malloc in the kernel takes from; any number */
    sg_print_fn print;             /* may be NULL; called on engine threads, one call a text */
    sg_condition_fn set_condition; /* may be NULL; called on engine threads */
    sg_done_fn done; /* called once on an engine thread, and only if submit succeeded */
    void *user;
};
