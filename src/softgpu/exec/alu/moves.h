/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of what moves between registers without computing: predicates, packing, width.
 */
#pragma once

#include "warp_state.h"

/* insn.mode of run_predicate */
enum predicate_mode {
    PREDICATE_MOV,
    PREDICATE_NOT,
    PREDICATE_AND,
    PREDICATE_OR,
    PREDICATE_XOR,
};

void run_predicate(struct warp *warp, const struct insn *insn);
void run_predicate_pair(struct warp *warp, const struct insn *insn);
void run_set_b32(struct warp *warp, const struct insn *insn);
void run_widen_u32(struct warp *warp, const struct insn *insn);
void run_widen_s32(struct warp *warp, const struct insn *insn);
void run_narrow(struct warp *warp, const struct insn *insn);
void run_pack_2x16(struct warp *warp, const struct insn *insn);
void run_unpack_2x16(struct warp *warp, const struct insn *insn);
void run_pack_2x32(struct warp *warp, const struct insn *insn);
void run_unpack_2x32(struct warp *warp, const struct insn *insn);
void run_pack_4x16(struct warp *warp, const struct insn *insn);
void run_unpack_4x16(struct warp *warp, const struct insn *insn);
