/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Funnel's libcupti asks of Funnel's libcuda.so.1: an export table of cuGetExportTable, which
 * NVIDIA's library does not have. Times are of CLOCK_MONOTONIC in nanoseconds. All functions may be
 * called from any thread, but not by a hook.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"

/* The id of the table, a struct profiler_interface. */
#define PROFILER_INTERFACE_ID    \
    {                            \
        "\xf0\x0e\x1a profile 2" \
    }

/* A call of the program. */
struct profiler_call {
    const char *name;      /* of the symbol, such as "cuMemAlloc_v2" or "cudaMalloc" */
    uint32_t runtime_cbid; /* CUPTI's number of a call of the runtime; 0 = a call of the driver */
    int is_nested;         /* the runtime makes it, in a call of the program */
    uint32_t correlation;  /* as enter() has given it; that of the outer call of a nested one */
    const void *arguments; /* a struct of them, or NULL */
    const char *symbol;    /* of the runtime: the name of a kernel that it launches, or NULL */
    CUstream stream;       /* its parameter hStream, or NULL */
    CUevent event;         /* its parameter hEvent, or NULL */
    CUfunction function;   /* of the driver: the kernel that it launches, or NULL */

    /* What follows is known when it has returned. */
    uint64_t begin_ns, end_ns;
    int result; /* a CUresult or cudaError_t */
};

enum profiler_work_kind {
    PROFILER_KERNEL = 1,
    PROFILER_COPY,
    PROFILER_MEMSET,
    PROFILER_GRAPH,
};

/* The kinds of memory that a copy has at its ends. */
enum profiler_memory {
    PROFILER_UNKNOWN,
    PROFILER_PAGEABLE,
    PROFILER_PINNED,
    PROFILER_DEVICE,
};

/* Where device memory is. */
struct profiler_place {
    uint32_t device, context;
};

/* Work of this program that the device has done. */
struct profiler_work {
    enum profiler_work_kind kind;
    uint32_t correlation; /* of the call that made it; 0 = not known */
    uint64_t submitted_ns, begin_ns, end_ns;
    uint32_t device, context, stream; /* ids as cuCtxGetId() and cuStreamGetId() give them */
    uint64_t bytes;                   /* of a copy or memset */
    uint32_t value;                   /* of a memset */
    enum profiler_memory to, from;
    struct profiler_place to_place, from_place; /* where these are PROFILER_DEVICE */
    const char *name;                           /* of a kernel; valid until the hook returns */
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared, static_shared, local_per_thread, registers;
    int in_graph;   /* a node of a graph */
    uint64_t graph; /* of a node: the handle of the graph that was launched; 0 = not known */
    uint32_t node;  /* its number there, as exec_nodes() has it */
};

enum profiler_mark_kind {
    PROFILER_MARK = 1,
    PROFILER_PUSH, /* a range of the thread begins, and ends: each ends the newest of its domain */
    PROFILER_POP,
    PROFILER_START, /* a range begins that any thread may end by its number */
    PROFILER_END,
    PROFILER_NAME,        /* a domain or a text gets a handle */
    PROFILER_NAME_THREAD, /* an object, whose id or handle is the number, gets a name */
    PROFILER_NAME_DEVICE,
    PROFILER_NAME_CONTEXT,
    PROFILER_NAME_STREAM,
    PROFILER_NAME_OTHER, /* a category or an event gets a name */
};

enum profiler_payload {
    PROFILER_NO_PAYLOAD,
    PROFILER_UNSIGNED,
    PROFILER_SIGNED,
    PROFILER_DOUBLE,
};

/* What else the program says of a mark, or of a range that begins. */
struct profiler_mark_data {
    int has_color;
    uint32_t color, category;
    enum profiler_payload payload_kind;
    uint64_t payload; /* the bits of it */
};

/* A call of NVTX. */
struct profiler_mark {
    enum profiler_mark_kind kind;
    uint32_t cbid;         /* CUPTI's number of the function */
    const char *name;      /* of the function, such as "nvtxRangePushA" */
    const void *arguments; /* a struct of them */
    const void *result;    /* its return value, or NULL */
    const char *domain;    /* name; NULL = the default one */
    const char *text;      /* of a mark or range that begins */
    uint64_t number;       /* of a range of any thread, or an object that gets a name */
    const struct profiler_mark_data *data; /* NULL: there is none */
};

enum profiler_resource_kind {
    PROFILER_MODULE_LOADED = 1,
    PROFILER_MODULE_ENDS,
    PROFILER_CONTEXT_ENDS,
};

/* A module that is loaded in a context, also when a kernel of its library is first used there, or
 * that ends. Or a context that ends, with all that it has. */
struct profiler_resource {
    enum profiler_resource_kind kind;
    CUcontext context;
    CUmodule module;
    const void *code; /* machine code for the device, until the hook returns; NULL: not known */
    size_t code_size;
};

/* Called by the threads of the program. A hook may make calls of the driver, for which no hook is
 * called. */
struct profiler_hooks {
    /* A call begins: its correlation number, not 0. The thread is inside the library where it is
     * one of the driver. */
    uint32_t (*enter)(const struct profiler_call *call);
    /* It has returned. */
    void (*leave)(const struct profiler_call *call);
    /* Work, in the order in which streams were asked for it. One thread at a time. */
    void (*take)(const struct profiler_work *work);
    /* A call of NVTX, when its result is known. */
    void (*mark)(const struct profiler_mark *mark);
    /* Something is made, or will end, within a call. */
    void (*resource)(const struct profiler_resource *resource);
};

/* A node of a launchable graph. */
struct profiler_node {
    CUgraphNode original; /* of the graph that it was made of, or of a child graph of that */
    CUgraphNodeType type;
};

struct profiler_interface {
    size_t size; /* of this struct */
    /* Calls the hooks from now on. Work is measured from the first call after cuInit() on.
     * CUDA_ERROR_NOT_PERMITTED when a profiler is there already, CUDA_ERROR_NOT_SUPPORTED when the
     * library passes calls on to the real driver. */
    CUresult (*begin)(const struct profiler_hooks *hooks);
    /* Ends it, after up to half a second for work that is not done. */
    CUresult (*end)(void);
    /* Passes on the work that is done. With `ask` the server is asked, and afterwards nothing is
     * left that was done before the call. */
    CUresult (*collect)(int ask);
    /* How many records of work are lost so far. */
    uint64_t (*lost)(void);
    /* How many nodes a launchable graph has, and the first `capacity` of them, by number. */
    unsigned (*exec_nodes)(CUgraphExec exec, unsigned capacity, struct profiler_node *ret_nodes);
};
