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

/* Whether it is a plain ld.param of as many bytes as the register has. */
static bool is_param_load(const struct builder *builder, const struct ptx_instruction *instruction)
{
    struct tokens tokens;
    if (builder->function != builder->kernel || instruction->guard >= 0 ||
        instruction->operand_count != 2 || instruction->operands[0].kind != PTX_OPERAND_REGISTER ||
        !tokens_split(instruction->opcode, &tokens) || tokens.count != 3 ||
        !token_is(&tokens, 0, "ld") ||
        !(token_is(&tokens, 1, "param") || token_is(&tokens, 1, "param::entry")))
        return false;
    enum ptx_type type = last_type(&tokens);
    enum ptx_type held = register_type(builder, &instruction->operands[0]);
    unsigned size = ptx_type_size(type);
    return type != PTX_PRED && held != PTX_PRED && (size == 4 || size == 8) &&
           ptx_type_size(held) == size;
}

/* The kernel's own parameter that the address names; NULL: something else. */
static const struct ptx_symbol *param_of(const struct builder *builder,
                                         const struct ptx_operand *address)
{
    const struct ptx_operand *base = address->elements;
    if (address->kind != PTX_OPERAND_ADDRESS || address->count != 1 ||
        base->kind != PTX_OPERAND_SYMBOL)
        return NULL;
    const struct ptx_symbol *symbol = base->symbol;
    bool is_own = symbol->kind == PTX_VARIABLE && symbol->index < builder->kernel->param_count &&
                  builder->kernel->params[symbol->index] == symbol;
    return is_own ? symbol : NULL;
}

/* Whether the register now holds the parameter from the start. What lies beyond the parameters is
 * refused where the load is decoded. */
static bool fix_param(struct builder *builder, const struct ptx_instruction *instruction)
{
    const struct ptx_operand *to = &instruction->operands[0], *from = &instruction->operands[1];
    const struct ptx_symbol *symbol = param_of(builder, from);
    unsigned size = ptx_type_size(register_type(builder, to));
    if (!symbol)
        return false;
    uint64_t at = param_offset(builder, symbol) + from->bits + from->elements[0].bits;
    uint32_t all = kernel_params_size(builder->kernel);
    if (at >= all || size > all - at)
        return false;
    struct program *program = builder->program;
    struct param_register *params =
        realloc(program->params, (program->param_count + 1) * sizeof(*params));
    if (!params) {
        decode_fail(builder, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
        return false;
    }
    program->params = params;
    params[program->param_count++] = (struct param_register){
        .offset = layout_of(builder, builder->function)->registers[to->reg],
        .is_wide = size == 8,
        .at = (uint32_t)at,
    };
    return true;
}

/* A generic address of global memory is that of global memory. */
static bool is_same_address(const struct builder *builder,
                            const struct ptx_instruction *instruction)
{
    struct tokens tokens;
    const struct ptx_operand *to = instruction->operands;
    return instruction->guard < 0 && instruction->operand_count == 2 &&
           to->kind == PTX_OPERAND_REGISTER && register_type(builder, to) != PTX_B128 &&
           is_wide_type(register_type(builder, to)) && to[1].kind == PTX_OPERAND_REGISTER &&
           is_wide_type(register_type(builder, &to[1])) &&
           tokens_split(instruction->opcode, &tokens) && token_is(&tokens, 0, "cvta") &&
           ((tokens.count == 4 && token_is(&tokens, 1, "to") && token_is(&tokens, 2, "global")) ||
            (tokens.count == 3 && token_is(&tokens, 1, "global"))) &&
           is_wide_type(last_type(&tokens));
}

/* Whether the instruction's register needs no code from now on; nothing else writes it. */
static bool fix(struct builder *builder, struct layout *layout,
                const struct ptx_instruction *instruction)
{
    const struct ptx_operand *to = &instruction->operands[0], *from = &instruction->operands[1];
    if (is_param_load(builder, instruction))
        return fix_param(builder, instruction);
    if (is_same_address(builder, instruction)) {
        if (!layout->fixed[from->reg])
            return false;
        layout->registers[to->reg] = layout->registers[from->reg];
        return true;
    }
    enum ptx_type type = type_of_mov(builder, instruction);
    if (type == PTX_PRED || !is_fixed_source(from, is_wide_type(type)))
        return false;
    layout->registers[to->reg] = operand_source(builder, from, type);
    return true;
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
        const struct ptx_operand *to = instruction->operands;
        if (instruction->operand_count < 2 || to->kind != PTX_OPERAND_REGISTER ||
            places[to->reg] != 1)
            continue;
        builder->instruction = instruction;
        layout->fixed[to->reg] = fix(builder, layout, instruction);
    }
    builder->instruction = NULL;
    free(places);
}

bool fixed_registers_has(struct builder *builder, const struct ptx_instruction *instruction)
{
    const struct ptx_operand *to = instruction->operands;
    return instruction->operand_count >= 2 && to->kind == PTX_OPERAND_REGISTER &&
           layout_of(builder, builder->function)->fixed[to->reg] &&
           (type_of_mov(builder, instruction) != PTX_PRED || is_param_load(builder, instruction) ||
            is_same_address(builder, instruction));
}
