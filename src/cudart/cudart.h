/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a driver that the CUDA libraries use beyond the public API: the tables of
 * cuGetExportTable, and the lookup rules of cuGetProcAddress.
 *
 * Both of our drivers, the client and the software GPU, answer from here. They differ only in
 * struct cudart_ops, which each fills once before its first answer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"

/*
 * The functions of a driver that the tables call. They are called from any thread, without a lock
 * of this module.
 */
struct cudart_ops {
    int driver_version;
    CUresult (*device_count)(int *ret_count);
    CUresult (*device_uuid)(CUuuid *ret_uuid, CUdevice device);
    CUresult (*device_attribute)(int *ret_value, CUdevice_attribute attribute, CUdevice device);

    /* The handle of the primary context, whether or not it is active; takes no reference. */
    CUresult (*primary_context)(CUcontext *ret_context, CUdevice device);
    /* The calling thread's current context, or NULL. */
    CUcontext (*current_context)(void);
    /* 0 while the context can be used; CUDA_ERROR_DEINITIALIZED when the driver is shut down,
     * CUDA_ERROR_NOT_INITIALIZED in a child of the process that initialized it. */
    CUresult (*context_state)(CUcontext context);
    CUresult (*context_device)(CUcontext context, CUdevice *ret_device);
    CUresult (*context_id)(CUcontext context, unsigned long long *ret_id);
    /* As cuStreamGetId; stream may be CU_STREAM_LEGACY or CU_STREAM_PER_THREAD, never NULL. */
    CUresult (*stream_id)(CUcontext context, CUstream stream, unsigned long long *ret_id);

    /* Calls visit for each kernel of the module, and returns how many there are. */
    int (*for_each_function)(CUcontext context, CUmodule module,
                             void (*visit)(void *user, CUfunction function), void *user);
    /* image: a fat binary wrapper or container. Loads into the current context. */
    CUresult (*module_load)(CUmodule *ret_module, const void *image);
};

/* ops must stay valid for the life of the process. Called before anything else here. */
void cudart_init(const struct cudart_ops *ops);

/* The whole of cuGetExportTable. An unknown table gives CUDA_ERROR_INVALID_VALUE and NULL. A table
 * lives as long as the process. From any thread. */
CUresult cudart_get_export_table(const void **ret_table, const CUuuid *id);

/*
 * The driver calls this when a context is destroyed or reset. It passes every value that libraries
 * attached to the context to its destructor. The caller must hold no lock that a driver call may
 * take.
 */
void cudart_context_gone(CUcontext context);

/* A call of the runtime that begins or ends, as libcudart reports it. */
struct cudart_call {
    uint32_t id; /* CUPTI's number of the entry point */
    bool exits;
    const char *name;      /* such as "cudaMalloc" */
    const void *arguments; /* the arguments, in a struct in their order */
    const void *result;    /* of a call that ends: its cudaError_t */
    CUstream stream;       /* NULL where the call has none */
    const char *symbol;    /* of a kernel that is launched, else NULL */
};

/* Each libcudart of the process calls the hook for each call of its program from now on; NULL ends
 * that. From any thread. */
void cudart_observe(void (*hook)(const struct cudart_call *call));

/* What a call of the runtime does with a variable that it finds by the program's symbol. */
enum cudart_symbol {
    CUDART_SYMBOL_COPY_TO,
    CUDART_SYMBOL_COPY_FROM,
    CUDART_SYMBOL_SIZE,
    CUDART_SYMBOL_ADDRESS, /* the first argument says where the program gets the address */
    CUDART_SYMBOL_NODE,    /* a node of a graph gets it; or a call of a newer runtime, not known */
};

/* Each libcudart of the process calls the hook for each such call from now on. Once, before there
 * are other threads. */
void cudart_watch_symbols(void (*hook)(enum cudart_symbol symbol, const struct cudart_call *call));

/*
 * One row of the generated cuGetProcAddress table: for callers of at least `version`, `name` means
 * `function`. The flag is 0 for the default, and 2 for the per-thread default stream. Rows are
 * sorted by name (strcmp), then flag, then version, all ascending. There are no rows of flag 1
 * (legacy stream), for they would repeat flag 0. A name with no rows of flag 2 answers from flag 0.
 */
struct entry_point {
    const char *name;
    uint8_t flag;
    int version;
    void *function;
};

/*
 * The whole of cuGetProcAddress_v2. An unknown name is no error: the result is CUDA_SUCCESS with a
 * NULL function, and ret_status, unless it is NULL, gets the reason. From any thread.
 */
CUresult cudart_get_proc_address(const struct entry_point *table, size_t count, const char *symbol,
                                 void **ret_function, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult *ret_status, int driver_version);
