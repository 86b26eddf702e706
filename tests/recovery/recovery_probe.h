/* SPDX-License-Identifier: Apache-2.0 */
/* What the probe has from its beginning, for all of its acts. */
#pragma once

#include <stdint.h>

#include "cuda_abi.h"
#include "probe_field.h"

#define STREAMS 3
#define SMALL (64u << 10)
#define LARGE (18u << 20) /* more than the slots for copies hold */

extern struct program {
    CUcontext context;
    CUmodule module;
    CUfunction wait, stray;
    struct field fields[STREAMS];
    CUgraphExec exec;
    uint32_t *flag; /* page-locked: ends the kernel `wait`, whose blocks count at BEGUN */
} program;
