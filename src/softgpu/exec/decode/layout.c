/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things go: which functions a kernel reaches, their registers, frames and shared variables.
 *
 * Every function has a window of the register file for itself, so a call moves nothing. Only where
 * a function can be entered again before it has returned are its registers kept in its frame across
 * calls. Callees are placed before their callers: the lowest program counter runs first, so lanes
 * that call are back when the others arrive behind the call.
 */
#include "layout.h"

#include <stdlib.h>
#include <string.h>

#include "lanes.h"
#include "operand.h"
#include "register_slots.h"

#define FRAME_ALIGN 16
#define MAX_FRAME (16u << 20)
#define MAX_SHARED (4u << 20)

struct layout *layout_of(struct builder *builder, const struct ptx_function *function)
{
    return &builder->layouts[function->index];
}

static uint64_t align_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) & ~(align - 1);
}

static uint32_t bounded(uint64_t value, uint32_t limit)
{
    return value > limit ? limit : (uint32_t)value;
}

uint32_t layout_params(struct ptx_symbol *const *params, uint32_t count, uint32_t start,
                       uint32_t *ret_offsets)
{
    uint64_t at = start;
    for (uint32_t i = 0; i < count; i++) {
        at = align_up(at, params[i]->variable.align);
        if (ret_offsets)
            ret_offsets[i] = bounded(at, MAX_FRAME);
        at += params[i]->variable.size;
        at = bounded(at, MAX_FRAME);
    }
    return (uint32_t)at;
}

uint32_t kernel_params_size(const struct ptx_function *kernel)
{
    return layout_params(kernel->params, kernel->param_count, 0, NULL);
}

/* ---- Registers ---- */

static void layout_registers(struct builder *builder, const struct ptx_function *function,
                             struct layout *layout)
{
    static const uint32_t steps[3] = {LANES * 8, LANES * 4, 4};
    struct register_slots slots;
    if (!register_slots_init(&slots, function)) {
        register_slots_fini(&slots);
        decode_fail(builder, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
        return;
    }
    layout->wide_count = slots.counts[0];
    layout->narrow_count = slots.counts[1];
    layout->predicate_count = slots.counts[2];
    layout->window = builder->program->file_size;
    uint32_t at[3] = {layout->window};
    at[1] = at[0] + slots.counts[0] * steps[0];
    at[2] = at[1] + slots.counts[1] * steps[1];
    for (uint32_t i = 0; i < function->register_count; i++) {
        unsigned width = register_width(function->registers[i].type);
        layout->registers[i] = at[width] + slots.slot[i] * steps[width];
    }
    builder->program->file_size =
        (uint32_t)align_up(at[2] + slots.counts[2] * steps[2], REGISTER_ALIGN);
    register_slots_fini(&slots);
}

/* ---- Memory ---- */

static uint32_t add_shared(struct builder *builder, const struct ptx_variable *variable)
{
    uint64_t at = align_up(builder->program->static_shared, variable->align);
    builder->program->static_shared = bounded(at + variable->size, MAX_SHARED);
    return bounded(at, MAX_SHARED);
}

static void layout_frame(struct builder *builder, const struct ptx_function *function,
                         struct layout *layout)
{
    uint32_t at = 0;
    if (function->is_entry) {
        layout_params(function->params, function->param_count, 0, layout->params);
    } else {
        at = layout_params(function->returns, function->return_count, 0, layout->returns);
        at = layout_params(function->params, function->param_count, at, layout->params);
    }
    for (uint32_t i = 0; i < function->variable_count; i++) {
        const struct ptx_variable *variable = &function->variables[i]->variable;
        if (variable->space == PTX_SHARED) {
            layout->variables[i] = variable->is_extern ? 0 : add_shared(builder, variable);
        } else if (!is_device_variable(function->variables[i])) {
            at = bounded(align_up(at, variable->align), MAX_FRAME);
            layout->variables[i] = at;
            at = bounded(at + variable->size, MAX_FRAME);
        }
    }
    layout->mark = (uint32_t)align_up(at, 4);
    layout->save = (uint32_t)align_up(layout->mark + (layout->allocates ? 4 : 0), 8);
    uint32_t saved = layout->wide_count * 8 + layout->narrow_count * 4 + layout->predicate_count;
    layout->frame =
        (uint32_t)align_up(layout->save + (builder->program->recursive ? saved : 0), FRAME_ALIGN);
    if (layout->frame >= MAX_FRAME)
        decode_fail(builder, CUDA_ERROR_INVALID_PTX, "function %s: its local memory is too large",
                    function->name);
}

/* ---- What a kernel reaches ---- */

static void walk_function(struct builder *builder, const struct ptx_function *function);

static void walk_symbol(struct builder *builder, const struct ptx_symbol *symbol)
{
    if (symbol->kind == PTX_FUNCTION && symbol->function->has_body && !symbol->function->is_entry)
        walk_function(builder, symbol->function);
    bool is_shared =
        symbol->kind == PTX_VARIABLE && !symbol->home && symbol->variable.space == PTX_SHARED;
    bool is_dynamic = symbol->kind == PTX_VARIABLE && symbol->variable.space == PTX_SHARED &&
                      (symbol->variable.is_extern || symbol->variable.size == 0);
    if (is_dynamic && symbol->variable.align > builder->dynamic_align)
        builder->dynamic_align = symbol->variable.align;
    if (is_shared && builder->shared[symbol->index] == NO_OPERAND)
        builder->shared[symbol->index] =
            symbol->variable.is_extern ? 0 : add_shared(builder, &symbol->variable);
}

static void walk_operands(struct builder *builder, const struct ptx_operand *operands,
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (operands[i].symbol)
            walk_symbol(builder, operands[i].symbol);
        walk_operands(builder, operands[i].elements, operands[i].count);
    }
}

/* Through a pointer any function may be called. */
static void walk_all_functions(struct builder *builder)
{
    builder->program->recursive = true;
    for (uint32_t i = 0; i < builder->module->function_count; i++) {
        const struct ptx_function *function = builder->module->functions[i];
        if (function->has_body && !function->is_entry)
            walk_function(builder, function);
    }
}

static bool calls_pointer(const struct builder *builder, const struct ptx_instruction *instruction)
{
    if (strncmp(instruction->opcode, "call", 4) != 0)
        return false;
    for (uint32_t i = 0; i < instruction->operand_count && i < 2; i++) {
        if (instruction->operands[i].kind == PTX_OPERAND_REGISTER)
            return true;
    }
    return false;
}

static bool allocates(const struct ptx_instruction *instruction)
{
    return strncmp(instruction->opcode, "alloca", 6) == 0 ||
           strncmp(instruction->opcode, "stack", 5) == 0;
}

static void walk_function(struct builder *builder, const struct ptx_function *function)
{
    struct layout *layout = layout_of(builder, function);
    if (layout->on_path) {
        builder->program->recursive = true;
        return;
    }
    if (layout->reached || builder->failed)
        return;
    layout->reached = true;
    layout->on_path = true;
    if (++builder->depth > 1000)
        decode_fail(builder, CUDA_ERROR_INVALID_PTX, "functions call each other too deeply");
    for (uint32_t i = 0; i < function->instruction_count && !builder->failed; i++) {
        const struct ptx_instruction *instruction = &function->instructions[i];
        walk_operands(builder, instruction->operands, instruction->operand_count);
        if (calls_pointer(builder, instruction))
            walk_all_functions(builder);
        layout->allocates |= allocates(instruction);
        builder->allocates |= layout->allocates;
    }
    builder->depth--;
    layout->on_path = false;
    builder->order[builder->order_count++] = function;
}

static bool allocate_layout(const struct ptx_function *function, struct layout *layout)
{
    layout->registers = calloc(function->register_count + 1, sizeof(uint32_t));
    layout->fixed = calloc(function->register_count + 1, sizeof(bool));
    layout->variables = calloc(function->variable_count + 1, sizeof(uint32_t));
    layout->params = calloc(function->param_count + 1, sizeof(uint32_t));
    layout->returns = calloc(function->return_count + 1, sizeof(uint32_t));
    return layout->registers && layout->fixed && layout->variables && layout->params &&
           layout->returns;
}

/* Callees come first in the order, so their depth is known. */
static void measure_depth(struct builder *builder, const struct ptx_function *function)
{
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < function->instruction_count; i++) {
        const struct ptx_instruction *instruction = &function->instructions[i];
        if (strncmp(instruction->opcode, "call", 4) != 0)
            continue;
        for (uint32_t j = 0; j < instruction->operand_count && j < 2; j++) {
            const struct ptx_symbol *symbol = instruction->operands[j].symbol;
            bool is_callee = symbol && symbol->kind == PTX_FUNCTION;
            if (is_callee && layout_of(builder, symbol->function)->deepest > deepest)
                deepest = layout_of(builder, symbol->function)->deepest;
        }
    }
    struct layout *layout = layout_of(builder, function);
    layout->deepest = bounded((uint64_t)layout->frame + deepest, MAX_FRAME);
}

bool layout_program(struct builder *builder)
{
    struct program *program = builder->program;
    walk_function(builder, builder->kernel);
    for (uint32_t i = 0; i < builder->order_count && !builder->failed; i++) {
        const struct ptx_function *function = builder->order[i];
        struct layout *layout = layout_of(builder, function);
        if (!allocate_layout(function, layout)) {
            decode_fail(builder, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
            return false;
        }
        layout_registers(builder, function, layout);
        layout_frame(builder, function, layout);
        measure_depth(builder, function);
    }
    program->local_size = layout_of(builder, builder->kernel)->deepest;
    if (program->static_shared >= MAX_SHARED)
        decode_fail(builder, CUDA_ERROR_INVALID_PTX, "too much shared memory");
    program->dynamic_shared_start =
        (uint32_t)align_up(program->static_shared, builder->dynamic_align);
    if (builder->allocates)
        program->stack_limits = builder_allocate_lanes(builder, 4);
    return !builder->failed;
}
