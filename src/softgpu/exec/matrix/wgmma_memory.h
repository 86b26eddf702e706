/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices of wgmma in shared memory, as descriptors say; and groups of wgmma.
 *
 * Memory is read in chunks of 16 bytes. Along k a row of 32 bytes is two of them. Transposed, a
 * chunk holds eight rows of 16 bits, and there are as many chunks as elements along k.
 */
#pragma once

#include "wgmma.h"

void run_wgmma_commit(struct warp *warp, const struct insn *insn);
/* imm: how many groups may be under way. */
void run_wgmma_wait(struct warp *warp, const struct insn *insn);

/* Rows of A or columns of B, a multiple of eight, each WGMMA_WORDS words along k. False behind a
 * fault. */
bool wgmma_rows(struct warp *warp, const struct insn *insn, const struct wgmma_operand *operand,
                unsigned first, unsigned count, uint32_t *ret_rows);
