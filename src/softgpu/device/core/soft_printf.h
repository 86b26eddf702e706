/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device printf output, on its way to the program's standard output. As on hardware, each context
 * keeps its own. It is written, part by part, when the program synchronizes with any kernel of that
 * context, and not by queries.
 */
#pragma once

#include "exec.h"

struct printer;

/* Creates the printf output of a context's kernels. NULL when out of memory. */
struct printer *printer_create(void);
/* Writes the remaining output. NULL is allowed. */
void printer_destroy(struct printer *printer);

/* From any thread. Keeps a text; output beyond a megabyte is written at once. */
void print_keep(struct printer *printer, enum sg_print_kind kind, const struct sg_text *text);

/* Writes the kept output; called without soft_lock. */
void print_flush(struct printer *printer);
/* As print_flush(), for a caller that holds soft_lock, which is released meanwhile. */
void print_flush_locked(struct printer *printer);
