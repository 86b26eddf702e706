/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers in shared memory: mbarrier, and cp.async.mbarrier.arrive.
 */
#pragma once

#include "decode.h"

/* Bytes have come, for the barrier that operand number `address` names in that space. */
void emit_completion(struct builder *builder, unsigned address, enum ptx_space space,
                     unsigned bytes);

void decode_mbarrier(struct builder *builder, const struct tokens *tokens);
void decode_copy_arrive(struct builder *builder, const struct tokens *tokens);
