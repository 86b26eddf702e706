/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suld, sust and sured on objects: one insn with the values, and behind it a nop that carries the
 * coordinates.
 */
#pragma once

#include "decode.h"

void decode_surface_load(struct builder *builder, const struct tokens *tokens);
void decode_surface_store(struct builder *builder, const struct tokens *tokens);
void decode_surface_reduction(struct builder *builder, const struct tokens *tokens);
