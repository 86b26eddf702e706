/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device printf output, on its way to the program's standard output. As on hardware it is written
 * when the program synchronizes with any kernel, and not by queries.
 */
#pragma once

#include "exec.h"

/* From any thread. Keeps `size` bytes; output beyond a megabyte is written at once. */
void print_keep(enum sg_print_kind kind, const char *text, size_t size);

/* Writes the kept output; called without soft_lock. */
void print_flush(void);
/* As print_flush(), for a caller that holds soft_lock, which is released meanwhile. */
void print_flush_locked(void);
