/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operands of the instruction that is decoded: registers, constants, addresses.
 */
#pragma once

#include "builder.h"

unsigned operand_count(const struct builder *builder);
const struct ptx_operand *operand_at(struct builder *builder, unsigned index);
bool is_wide_type(enum ptx_type type);
enum ptx_type register_type(const struct builder *builder, const struct ptx_operand *operand);
bool is_register(const struct builder *builder, const struct ptx_operand *operand,
                 bool want_predicate);
uint32_t operand_constant(struct builder *builder, uint64_t bits, bool is_wide);
/* Offset of a source of this type, whatever it is; may emit code that fetches it. */
uint32_t operand_source(struct builder *builder, const struct ptx_operand *operand,
                        enum ptx_type type);
/* A predicate source; *ret_negated is for !p. A constant predicate is possible. */
uint32_t operand_source_predicate(struct builder *builder, const struct ptx_operand *operand,
                                  bool *ret_negated);
uint32_t operand_destination_predicate(struct builder *builder, const struct ptx_operand *operand);
/*
 * A destination for a value of this type. If the register is wider the value goes into a temporary,
 * and operand_finish_destination emits what widens it.
 */
uint32_t operand_destination(struct builder *builder, const struct ptx_operand *operand,
                             enum ptx_type type);
void operand_finish_destination(struct builder *builder, const struct ptx_operand *operand,
                                enum ptx_type type, uint32_t offset);
/* Where a .param or .local variable is in its function's frame; false when it is an entry's
 * parameter. */
bool operand_frame_offset(struct builder *builder, const struct ptx_symbol *symbol,
                          uint32_t *ret_offset);
uint32_t param_offset(struct builder *builder, const struct ptx_symbol *symbol);
