/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of control flow, of everything that lanes do together, and of what moves without
 * computing.
 */
#pragma once

#include "core.h"

/* insn.mode of run_predicate */
enum predicate_mode {
    PREDICATE_MOV,
    PREDICATE_NOT,
    PREDICATE_AND,
    PREDICATE_OR,
    PREDICATE_XOR,
};

enum shuffle_mode {
    SHUFFLE_UP,
    SHUFFLE_DOWN,
    SHUFFLE_BUTTERFLY,
    SHUFFLE_INDEX,
};

enum vote_mode {
    VOTE_ALL,
    VOTE_ANY,
    VOTE_UNIFORM,
    VOTE_BALLOT,
};

enum barrier_mode {
    BARRIER_SYNC,
    BARRIER_ARRIVE,
    BARRIER_POPC,
    BARRIER_AND,
    BARRIER_OR,
};

enum atomic_op {
    ATOMIC_ADD,
    ATOMIC_MIN,
    ATOMIC_MAX,
    ATOMIC_INC,
    ATOMIC_DEC,
    ATOMIC_AND,
    ATOMIC_OR,
    ATOMIC_XOR,
    ATOMIC_EXCH,
    ATOMIC_CAS,
    ATOMIC_OP_COUNT,
};

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

#define DECLARE(name) void run_##name(struct warp *warp, const struct insn *insn);
DECLARE(guarded)
DECLARE(in_fp_environment)
DECLARE(branch)
DECLARE(branch_if)
DECLARE(branch_indexed)
DECLARE(call)
DECLARE(call_pointer)
DECLARE(ret)
DECLARE(alloca)
DECLARE(stack_save)
DECLARE(stack_restore)
DECLARE(stack_mark)
DECLARE(stack_release)
DECLARE(exit)
DECLARE(trap)
DECLARE(nop)
DECLARE(fence)
DECLARE(nanosleep)
DECLARE(barrier)
DECLARE(cluster_arrive)
DECLARE(cluster_wait)
DECLARE(map_address)
DECLARE(rank_of_address)
DECLARE(warp_barrier)
DECLARE(barrier_result)
DECLARE(shuffle)
DECLARE(vote)
DECLARE(match_any_b32)
DECLARE(match_any_b64)
DECLARE(match_all_b32)
DECLARE(match_all_b64)
DECLARE(redux)
DECLARE(elect)
DECLARE(activemask)
DECLARE(predicate)
DECLARE(predicate_pair)
DECLARE(set_b32)
DECLARE(local_address)
DECLARE(param_address)
DECLARE(param_to_generic)
DECLARE(generic_to_param)
DECLARE(shared_to_generic)
DECLARE(generic_to_shared)
DECLARE(local_to_generic)
DECLARE(generic_to_local)
DECLARE(is_space)
DECLARE(read_special)
DECLARE(widen_u32)
DECLARE(widen_s32)
DECLARE(narrow)
DECLARE(pack_2x16)
DECLARE(unpack_2x16)
DECLARE(pack_2x32)
DECLARE(unpack_2x32)
DECLARE(pack_4x16)
DECLARE(unpack_4x16)
DECLARE(printf)
DECLARE(assert_fail)
DECLARE(malloc)
DECLARE(free)
#undef DECLARE
