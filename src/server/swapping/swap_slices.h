/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that leaves for another program, and memory that returns, move in slices. The program that
 * returns takes each slice that the other one has left. So the link copies in both directions at a
 * time, and the pool needs room for a slice more than the devices lack.
 *
 *     one program:  out, release │ out, release │ out, release │
 *     the other:                 │ make, in     │ make, in     │ make, in
 *
 * The functions are the session's thread's, as those of swap.h.
 */
#pragma once

#include "swap.h"

/* The part leaves. When only some slices of it could, that is no error. */
enum suspend_result swap_slices_out(struct session *session, const struct swap_part *part,
                                    uint64_t *ret_copied);

/* What there is room for returns, and stays. SUSPEND_NO_MEMORY while something is still away. */
enum suspend_result swap_slices_in(struct session *session);
