/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The array subsystem's state of a session and of a device. Only its own files include this.
 */
#pragma once

#include "array.h"
#include "array_clear.h"

#define SESSION_TEXTURES_MAX (1u << 16)

struct session_arrays {
    unsigned textures;
};

struct device_arrays {
    pthread_mutex_t clear_lock; /* of the creation of the next two: array_clear.c */
    CUdeviceptr zeroes;
    CUstream clear_stream;

    pthread_mutex_t spare_lock; /* of the next two: array_spare.c */
    struct list spares;         /* struct spare; oldest first */
    uint64_t spare_bytes;
};
