/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors that calls have returned, as lines for cuLogs*(): in memory, and to the callbacks that
 * the program has registered. From any thread.
 */
#pragma once

#include <stdbool.h>

#include "cuda_abi.h"
#include "line_ring.h"

/* The newest lines. */
extern struct line_ring error_lines;

/* A call has returned an error. */
void error_lines_add(const char *call, CUresult result);

/* Registers a callback. NULL when out of memory. */
CUlogsCallbackHandle error_lines_listen(CUlogsCallback callback, void *user);

/* False where the handle is none. */
bool error_lines_leave(CUlogsCallbackHandle handle);
