/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the PTX tree to a program. One PTX instruction becomes one insn or a few; each decode_
 * function takes an instruction and appends what runs it, or fails with a message.
 *
 * The instruction is builder->instruction, its opcode split into the tokens. A function that has
 * failed the builder (CUDA_ERROR_NOT_SUPPORTED or CUDA_ERROR_INVALID_PTX) may have appended
 * something; a builder that has failed before is left alone. The thread that builds calls them.
 */
#pragma once

#include "builder.h"
#include "tokens.h"

/* Comes back from the function, or ends the kernel's thread. */
void emit_return(struct builder *builder);

/* Sets the handler of the insn, inside a floating-point environment if it is not the usual one;
 * environment as in insn.environment. */
void set_handler(struct insn *insn, handler_fn run, unsigned environment);

/* Bytes have come, for the barrier that operand number `address` names in that space. */
void emit_completion(struct builder *builder, unsigned address, enum ptx_space space,
                     unsigned bytes);

void decode_alu(struct builder *builder, const struct tokens *tokens);
void decode_limit(struct builder *builder, const struct tokens *tokens);
void decode_prmt(struct builder *builder, const struct tokens *tokens);
void decode_setp(struct builder *builder, const struct tokens *tokens);
void decode_set(struct builder *builder, const struct tokens *tokens);
void decode_mov(struct builder *builder, const struct tokens *tokens);
void decode_logic(struct builder *builder, const struct tokens *tokens);
void decode_lop3(struct builder *builder, const struct tokens *tokens);
void decode_video(struct builder *builder, const struct tokens *tokens);
void decode_load(struct builder *builder, const struct tokens *tokens);
void decode_store(struct builder *builder, const struct tokens *tokens);
void decode_atomic(struct builder *builder, const struct tokens *tokens);
void decode_cvta(struct builder *builder, const struct tokens *tokens);
void decode_isspacep(struct builder *builder, const struct tokens *tokens);
void decode_cp(struct builder *builder, const struct tokens *tokens);
void decode_tex(struct builder *builder, const struct tokens *tokens);
void decode_tex_query(struct builder *builder, const struct tokens *tokens);
void decode_surface_load(struct builder *builder, const struct tokens *tokens);
void decode_surface_store(struct builder *builder, const struct tokens *tokens);
void decode_surface_reduction(struct builder *builder, const struct tokens *tokens);
void decode_stack(struct builder *builder, const struct tokens *tokens);
void decode_branch(struct builder *builder, const struct tokens *tokens);
void decode_branch_indexed(struct builder *builder, const struct tokens *tokens);
void decode_call(struct builder *builder, const struct tokens *tokens);
void decode_ret(struct builder *builder, const struct tokens *tokens);
void decode_exit(struct builder *builder, const struct tokens *tokens);
void decode_trap(struct builder *builder, const struct tokens *tokens);
void decode_policy(struct builder *builder, const struct tokens *tokens);
void decode_nop(struct builder *builder, const struct tokens *tokens);
void decode_fence(struct builder *builder, const struct tokens *tokens);
void decode_nanosleep(struct builder *builder, const struct tokens *tokens);
void decode_barrier(struct builder *builder, const struct tokens *tokens);
void decode_shuffle(struct builder *builder, const struct tokens *tokens);
void decode_vote(struct builder *builder, const struct tokens *tokens);
void decode_match(struct builder *builder, const struct tokens *tokens);
void decode_redux(struct builder *builder, const struct tokens *tokens);
void decode_elect(struct builder *builder, const struct tokens *tokens);
void decode_activemask(struct builder *builder, const struct tokens *tokens);
void decode_mma(struct builder *builder, const struct tokens *tokens);
void decode_wmma(struct builder *builder, const struct tokens *tokens);
void decode_wgmma(struct builder *builder, const struct tokens *tokens);
void decode_matrices(struct builder *builder, const struct tokens *tokens);
void decode_movmatrix(struct builder *builder, const struct tokens *tokens);
void decode_mbarrier(struct builder *builder, const struct tokens *tokens);
void decode_copy_arrive(struct builder *builder, const struct tokens *tokens);

void decode_mapa(struct builder *builder, const struct tokens *tokens);
void decode_cluster_barrier(struct builder *builder, const struct tokens *tokens);
void decode_tensor_copy(struct builder *builder, const struct tokens *tokens);
void decode_tensor_map(struct builder *builder, const struct tokens *tokens);
void decode_bulk(struct builder *builder, const struct tokens *tokens);
