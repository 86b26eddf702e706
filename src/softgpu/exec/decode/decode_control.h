/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control flow, barriers, and what the lanes of a warp do together.
 */
#pragma once

#include "decode.h"

/* Comes back from the function, or ends the kernel's thread. */
void emit_return(struct builder *builder);

void decode_stack(struct builder *builder, const struct tokens *tokens);
void decode_branch(struct builder *builder, const struct tokens *tokens);
void decode_branch_indexed(struct builder *builder, const struct tokens *tokens);
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
