/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cuPointerGetAttribute says of an address, and in how many bytes. The client and the software
 * GPU fill in what they know of the address; which attribute that is, and how wide, stands here
 * once. The functions are pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

struct cuda_pointer {
    CUdeviceptr address;
    bool known; /* else it is the program's own memory, and the rest means nothing */
    CUdeviceptr on_device, on_host; /* by which either reaches it; 0 = it does not */
    CUmemorytype type;
    CUcontext context; /* NULL: it belongs to none */
    CUdevice device;
    uint64_t start; /* of the allocation or variable, or of the reservation that it is mapped in */
    uint64_t size;  /* 0: there is none such; a reservation is known where nothing is mapped, too */
    uint64_t mapping_start;
    uint64_t mapping_size;
    unsigned long long id;
    bool managed, ipc_capable;
    unsigned handle_types;
    unsigned access;
    CUmemoryPool pool; /* that it is from, or NULL */
};

/* One of them. CUDA_ERROR_INVALID_VALUE where the address has none such. */
CUresult cuda_pointer_get(const struct cuda_pointer *pointer, CUpointer_attribute attribute,
                          void *ret_data);

/* Several, in order; what the address has none of is zeroes. An error is a NULL, or an attribute
 * that there is not or that can only be asked for alone. */
CUresult cuda_pointer_get_all(const struct cuda_pointer *pointer, unsigned count,
                              const CUpointer_attribute *attributes, void *const *ret_data);
