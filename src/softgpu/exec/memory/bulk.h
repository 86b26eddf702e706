/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk copies and reductions between global and shared memory, see bulk.c.
 */
#pragma once

#include "warp_state.h"

/* insn.mode; of a reduction the operation is added, and insn.width is the type. */
enum bulk_mode {
    BULK_COPY,
    BULK_REDUCE,
};

void run_bulk(struct warp *warp, const struct insn *insn);
