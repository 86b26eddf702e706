/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy subsystem's state of a session and of a device. Only its own files include this.
 */
#pragma once

#include "copy.h"
#include "device.h"
#include "session.h"

struct session_copies {
    atomic_uint_fast64_t count, bytes[COPY_WAYS];
};

/* Clients that search their memory at a time, as many as `scans` has bits. */
#define SCANS_MAX 32u

struct device_copies {
    CUstream shared_stream;      /* shared_copy_stream.h; NULL: there is none */
    CUdeviceptr numbers;         /* copy_fence.h; 0 = there is no table */
    CUfunction kernel;           /* copy_kernel.h; NULL: there is none */
    CUfunction scan_kernel;      /* address_scan.h; NULL: there is none */
    CUdeviceptr found;           /* uint64_t[SCANS_MAX], what a search has found */
    atomic_uint_least32_t scans; /* bit i: one uses found[i] */
};
