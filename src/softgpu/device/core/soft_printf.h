/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels print, on its way to the program's standard output. As on hardware it comes out when
 * the program synchronizes, be it with that kernel or another, and not when it only asks.
 */
#pragma once

#include "exec.h"

/* From any thread. What is more than a megabyte comes out at once. */
void print_keep(enum sg_print_kind kind, const char *text, size_t size);

/* Writes out what is kept, without the lock. */
void print_flush(void);
/* As print_flush(), for a caller that holds soft_lock, which is released meanwhile. */
void print_flush_locked(void);
