/* SPDX-License-Identifier: Apache-2.0 */
/* A compute core that computes nothing: grids run until the test ends them, so that the test
 * decides what happens when. */
#pragma once

#include "cuda_abi.h"
#include "exec.h"

/* How many grids have been started and not ended. */
unsigned fake_running(void);
/* The newest of them, or NULL. */
const struct sg_launch *fake_newest(void);
/* Ends the one that was started first. */
void fake_end(CUresult result);
/* Whether the driver has ended this one last; the test lets it end. */
bool fake_is_aborted(const struct sg_launch *launch);
/* Whether kernels of the last created space may access the address. */
bool fake_space_has(uint64_t address);

/* PTX for it: the kernels `one` and `two`, without parameters. */
#define FAKE_PTX ".version 9.0\n.target sm_90\n.visible .entry one()\n.visible .entry two()\n"

/* Makes the first device's context current, and has its kernel `one`. Ended by
 * cuDevicePrimaryCtxReset(). */
CUfunction fake_use(CUcontext *ret_context);
