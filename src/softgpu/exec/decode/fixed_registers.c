/* SPDX-License-Identifier: Apache-2.0 */
/* See fixed_registers.h. */
#include "fixed_registers.h"

#include <stdlib.h>
#include <string.h>

#include "operand.h"
#include "special.h"
#include "tokens.h"

/* Saturates at 2: more than one place is all that matters. */
static void count_places(uint8_t *places, const struct ptx_operand *operand)
{
    if (operand->kind == PTX_OPERAND_REGISTER && places[operand->reg] < 2)
        places[operand->reg]++;
    for (uint32_t i = 0; i < operand->count && operand->elements; i++)
        count_places(places, &operand->elements[i]);
}

/* Instructions write to their first operand; calls may write to any. */
static void count_all_places(const struct ptx_function *function, uint8_t *places)
{
    for (uint32_t i = 0; i < function->instruction_count; i++) {
        const struct ptx_instruction *instruction = &function->instructions[i];
        bool is_call = strncmp(instruction->opcode, "call", 4) == 0;
        uint32_t written = is_call ? instruction->operand_count : 1;
        for (uint32_t j = 0; j < written && j < instruction->operand_count; j++)
            count_places(places, &instruction->operands[j]);
    }
}

static bool is_fixed_special(const char *name, bool is_wide)
{
    int special = special_find(name);
    return special >= 0 && !special_is_volatile((unsigned)special) &&
           special_is_wide((unsigned)special) == is_wide;
}

/* Of a function's frame only the warp knows the address. */
static bool is_fixed_symbol(const struct ptx_symbol *symbol)
{
    if (symbol->kind != PTX_VARIABLE)
        return symbol->kind == PTX_FUNCTION;
    enum ptx_space space = symbol->variable.space;
    return space == PTX_GLOBAL || space == PTX_CONST || space == PTX_SHARED;
}

static bool is_fixed_source(const struct ptx_operand *from, bool is_wide)
{
    switch (from->kind) {
    case PTX_OPERAND_INTEGER:
    case PTX_OPERAND_F32:
    case PTX_OPERAND_F64:
        return true;
    case PTX_OPERAND_SYMBOL:
        return is_fixed_symbol(from->symbol);
    case PTX_OPERAND_SPECIAL:
        return is_fixed_special(from->name, is_wide);
    default:
        return false;
    }
}

/* The type of a plain mov between registers of that width; PTX_PRED where it is something else. */
static enum ptx_type type_of_mov(const struct builder *builder,
                                 const struct ptx_instruction *instruction)
{
    struct tokens tokens;
    const struct ptx_operand *to = instruction->operands;
    if (instruction->guard >= 0 || instruction->operand_count != 2 ||
        to->kind != PTX_OPERAND_REGISTER || !tokens_split(instruction->opcode, &tokens) ||
        tokens.count != 2 || !token_is(&tokens, 0, "mov"))
        return PTX_PRED;
    enum ptx_type type = last_type(&tokens), held = register_type(builder, to);
    bool is_plain = type != PTX_PRED && type != PTX_B128 && held != PTX_PRED && held != PTX_B128;
    return is_plain && is_wide_type(type) == is_wide_type(held) ? type : PTX_PRED;
}

void fixed_registers_find(struct builder *builder)
{
    const struct ptx_function *function = builder->function;
    struct layout *layout = layout_of(builder, function);
    uint8_t *places = calloc(function->register_count + 1, sizeof(*places));
    if (!places) {
        decode_fail(builder, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
        return;
    }
    count_all_places(function, places);
    for (uint32_t i = 0; i < function->instruction_count && !builder->failed; i++) {
        const struct ptx_instruction *instruction = &function->instructions[i];
        enum ptx_type type = type_of_mov(builder, instruction);
        if (type == PTX_PRED || places[instruction->operands[0].reg] != 1 ||
            !is_fixed_source(&instruction->operands[1], is_wide_type(type)))
            continue;
        uint32_t reg = instruction->operands[0].reg;
        builder->instruction = instruction;
        layout->registers[reg] = operand_source(builder, &instruction->operands[1], type);
        layout->fixed[reg] = true;
    }
    builder->instruction = NULL;
    free(places);
}

bool fixed_registers_has(struct builder *builder, const struct ptx_instruction *instruction)
{
    if (type_of_mov(builder, instruction) == PTX_PRED)
        return false;
    return layout_of(builder, builder->function)->fixed[instruction->operands[0].reg];
}
