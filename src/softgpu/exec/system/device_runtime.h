/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of the device runtime's functions: kernels launch kernels (CUDA dynamic parallelism).
 *
 * A child starts when its parent has ended, but before the end is reported. Children run in the
 * order of the launches, each followed by its own children. This order satisfies all streams and
 * events of a kernel, so these are mere numbers. A grid has one last error for all of its threads.
 */
#pragma once

#include "warp_state.h"

void run_get_parameter_buffer(struct warp *warp, const struct insn *insn);
void run_launch_device(struct warp *warp, const struct insn *insn);
void run_device_stream_create(struct warp *warp, const struct insn *insn);
void run_device_event_create(struct warp *warp, const struct insn *insn);

/* Functions that only succeed: cudaStreamDestroy, cudaEventRecord ... */
void run_device_success(struct warp *warp, const struct insn *insn);

void run_device_memcpy(struct warp *warp, const struct insn *insn);
void run_device_memset(struct warp *warp, const struct insn *insn);

void run_device_get_last_error(struct warp *warp, const struct insn *insn);
void run_device_peek_at_last_error(struct warp *warp, const struct insn *insn);
void run_device_get_error_name(struct warp *warp, const struct insn *insn);
void run_device_get_error_string(struct warp *warp, const struct insn *insn);
void run_device_malloc(struct warp *warp, const struct insn *insn);
void run_device_free(struct warp *warp, const struct insn *insn);
