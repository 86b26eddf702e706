/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which driver library this process runs on. Exactly one is loaded, once, before any other thread
 * starts; from then on every thread calls it through the table `driver`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver_table.h"

enum driver_kind {
    DRIVER_AUTO, /* NVIDIA's where it works and finds a device, else the software GPU */
    DRIVER_CUDA, /* NVIDIA's libcuda.so.1 */
    DRIVER_SOFT, /* the software GPU */
};

/* The driver's entry points; filled by driver_load(). */
extern struct driver_table driver;

/* Functions of the software GPU alone (soft_extension.h); NULL with another driver. */
struct driver_extension {
    void (*set_launch_owner)(uint64_t owner);
    CUresult (*forget_launch_owner)(uint64_t owner);
    CUresult (*abort_launches)(uint64_t owner, char *ret_kernel, size_t size);
};

extern struct driver_extension driver_extension;

/* Parses "auto", "cuda" or "soft": 0 or -EINVAL. */
int driver_kind_parse(const char *text, enum driver_kind *ret_kind);

/* Loads and initializes a driver library. 0 and its kind; or a negative value, and in `why` a
 * message for the operator of at most `why_size` bytes. Called once. */
int driver_load(enum driver_kind wanted, enum driver_kind *ret_kind, char *why, size_t why_size);

/* The path of the library that driver_load() chose. Lives as long as the process. */
const char *driver_path(void);

/* With true, the driver's messages about this thread's calls are not logged, until a call with
 * false. The caller expects that the driver may refuse its calls. */
void driver_expect_refusal(bool expected);

/* "CUDA_ERROR_..." for the log; never NULL. */
const char *driver_error_name(CUresult result);
