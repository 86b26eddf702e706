/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic operations.
 */
#pragma once

#include "atomic_op.h"
#include "warp_state.h"

struct atomic_row {
    handler_fn run;
    void (*reduce)(void *to, unsigned op, const void *from);
    uint32_t allowed; /* a bit an operation */
};

extern const struct atomic_row atomic_rows_base[PTX_TYPE_COUNT];
extern const struct atomic_row atomic_rows_v3[PTX_TYPE_COUNT];
extern const struct atomic_row atomic_rows_v4[PTX_TYPE_COUNT];
/* The atomic handler for this operation and type, or NULL. */
handler_fn atomic_handler(enum atomic_op op, enum ptx_type type);

/* Reduces `size` bytes of values of this type into others. */
void atomic_reduce(enum atomic_op op, enum ptx_type type, void *to, const void *from,
                   uint32_t size);
