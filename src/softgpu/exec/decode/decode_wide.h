/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of 128 bits: a register of this type is two of 64 bits, which lie one behind the other.
 * Nothing computes with them; they are moved, loaded, stored and exchanged.
 */
#pragma once

#include "decode_access.h"
#include "decode_memory.h"

void decode_mov_b128(struct builder *builder);
void decode_load_b128(struct builder *builder, const struct access *access);
void decode_store_b128(struct builder *builder, const struct access *access);
void decode_atomic_b128(struct builder *builder, const struct access *access, bool compares);
