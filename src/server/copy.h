/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What copies and memsets on streams have in common with those of graphs.
 */
#pragma once

#include "session.h"

/* The box as the driver wants it; addresses tell where each side is. */
CUDA_MEMCPY3D copy_describe(const struct wire_cuMemcpy3DAsync_v2 *in);

/* Is every byte of both sides the client's own? */
bool copy_check(struct session *session, const char *call, const CUDA_MEMCPY3D *box);
bool copy_check_memset(struct session *session, const char *call, const struct wire_fnMemset *in);

/* How far the last byte of a box lies behind its first: false when that overflows. */
bool copy_span(uint64_t pitch, uint64_t slice_rows, uint64_t width, uint64_t height, uint64_t depth,
               uint64_t *ret_span);

/* For the counters. */
void copy_count(struct session *session, uint64_t bytes);
