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

struct device_copies {
    CUstream shared_stream; /* shared_copy_stream.h; NULL: there is none */
    CUdeviceptr numbers;    /* copy_fence.h; 0 = there is no table */
    CUfunction kernel;      /* copy_kernel.h; NULL: there is none */
};
