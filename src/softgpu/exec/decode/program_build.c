/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a kernel's program: lays it out, decodes each function, and joins the jumps.
 */
#include "program_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alu_table.h"
#include "barrier.h"
#include "control_flow.h"
#include "decode.h"
#include "decode_alu.h"
#include "decode_control.h"
#include "decode_copy.h"
#include "decode_cvta.h"
#include "decode_memory.h"
#include "decode_mov.h"
#include "fixed_registers.h"
#include "load_store.h"
#include "opcodes.h"
#include "refused.h"
#include "stack.h"

static void allocate_temporaries(struct builder *builder)
{
    builder->program->stack_pointer = builder_allocate_lanes(builder, 4);
    for (unsigned i = 0; i < TEMPORARIES; i++) {
        builder->wide_temporary[i] = builder_allocate_lanes(builder, 8);
        builder->narrow_temporary[i] = builder_allocate_lanes(builder, 4);
        builder->predicate_temporary[i] = builder_allocate_lanes(builder, 4);
    }
}

/* ---- Instructions ---- */

/* Each insn of the instruction runs only in lanes where the guard holds. */
static void guard_each(struct builder *builder, uint32_t first, uint32_t guard)
{
    for (uint32_t i = first; i < builder->program->code_count; i++) {
        struct insn *insn = &builder->program->code[i];
        insn->inner = insn->run;
        insn->run = run_guarded;
        insn->guard = guard;
    }
}

static bool only_computes(const struct opcode *opcode)
{
    return opcode->decode == decode_setp || opcode->decode == decode_set ||
           opcode->decode == decode_mov || opcode->decode == decode_logic ||
           opcode->decode == decode_lop3 || opcode->decode == decode_limit ||
           opcode->decode == decode_cvta || opcode->decode == decode_isspacep ||
           opcode->decode == decode_load;
}

static void mark_each(struct builder *builder, uint32_t first, uint8_t flag)
{
    for (uint32_t i = first; i < builder->program->code_count; i++)
        builder->program->code[i].flags |= flag;
}

/* Lanes where the guard does not hold go round the instruction. */
static void decode_around(struct builder *builder, const struct opcode *opcode,
                          const struct tokens *tokens, uint32_t guard)
{
    builder_emit(builder, run_branch_if)->guard = guard ^ 1;
    uint32_t branch = builder->program->code_count - 1;
    opcode->decode(builder, tokens);
    if (!builder->failed)
        builder->program->code[branch].imm = builder->program->code_count;
}

static void decode_instruction(struct builder *builder)
{
    const struct ptx_instruction *instruction = builder->instruction;
    struct tokens tokens;
    if (!tokens_split(instruction->opcode, &tokens)) {
        decode_malformed(builder, "not an opcode");
        return;
    }
    builder->temporaries_used = 0;
    const struct opcode *opcode = opcode_find(tokens.text[0], tokens.length[0]);
    uint32_t first = builder->program->code_count;
    uint32_t guard = 0;
    bool is_guarded = instruction->guard >= 0;
    if (is_guarded)
        guard = layout_of(builder, builder->function)->registers[instruction->guard] |
                (instruction->guard_negated ? 1 : 0);
    if (is_guarded && opcode && opcode->is_control) {
        decode_around(builder, opcode, &tokens, guard);
        return;
    }
    if (opcode)
        opcode->decode(builder, &tokens);
    else
        decode_alu(builder, &tokens);
    if (is_guarded && !builder->failed && !(opcode && opcode->decode == decode_branch))
        guard_each(builder, first, guard);
    if (!opcode || only_computes(opcode))
        mark_each(builder, first, INSN_COMPUTES);
}

/* Labels of the function are known now. */
static void join_labels(struct builder *builder, uint32_t first_fixup)
{
    uint32_t kept = first_fixup;
    for (uint32_t i = first_fixup; i < builder->fixup_count; i++) {
        struct fixup *fixup = &builder->fixups[i];
        if (!fixup->label) {
            builder->fixups[kept++] = *fixup;
            continue;
        }
        uint32_t target = builder->starts[fixup->label->target];
        builder->program->code[fixup->insn].imm = target;
        builder->program->code[target].flags |= INSN_TARGET;
    }
    builder->fixup_count = kept;
}

static void decode_function(struct builder *builder, const struct ptx_function *function)
{
    uint32_t first_fixup = builder->fixup_count;
    builder->function = function;
    builder->starts = malloc((function->instruction_count + 1) * sizeof(*builder->starts));
    if (!builder->starts) {
        decode_fail(builder, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
        return;
    }
    builder->program->functions[function->index] = (struct program_function){
        .start = builder->program->code_count,
        .frame = layout_of(builder, function)->frame,
        .may_be_called = !function->is_entry,
    };
    if (layout_of(builder, function)->allocates && !function->is_entry)
        builder_emit(builder, run_stack_mark)->imm = layout_of(builder, function)->mark;
    fixed_registers_find(builder);
    for (uint32_t i = 0; i < function->instruction_count && !builder->failed; i++) {
        builder->starts[i] = builder->program->code_count;
        builder->instruction = &function->instructions[i];
        if (!fixed_registers_has(builder, builder->instruction))
            decode_instruction(builder);
    }
    builder->instruction = NULL;
    builder->starts[function->instruction_count] = builder->program->code_count;
    /* Running off the end is a return. */
    emit_return(builder);
    if (!builder->failed)
        join_labels(builder, first_fixup);
    free(builder->starts);
    builder->starts = NULL;
}

static void join_calls(struct builder *builder)
{
    for (uint32_t i = 0; i < builder->fixup_count; i++) {
        const struct fixup *fixup = &builder->fixups[i];
        builder->program->code[fixup->insn].imm =
            builder->program->functions[fixup->function->index].start;
    }
}

/* An instruction without a guard runs in several warps at once, if it is arithmetic, a load, a
 * store or a barrier. */
static void find_team_handlers(struct program *program)
{
    for (uint32_t i = 0; i < program->code_count; i++) {
        struct insn *insn = &program->code[i];
        team_handler_fn in_team = alu_team_handler(insn->run);
        if (!in_team)
            in_team = access_team_handler(insn->run);
        if (insn->run == run_barrier)
            in_team = team_barrier;
        if (!in_team)
            continue;
        insn->in_team = in_team;
        insn->flags |= INSN_IN_TEAM;
    }
}

/* Lanes wait for others only where a jump leads to, or behind what is not a mere computation. */
static void measure_stretches(struct program *program)
{
    for (uint32_t i = program->code_count; i-- > 1;) {
        struct insn *before = &program->code[i - 1];
        const struct insn *insn = &program->code[i];
        bool goes_on = !(insn->flags & INSN_TARGET) && insn->run_length < UINT8_MAX;
        if (before->flags & INSN_COMPUTES)
            before->run_length = goes_on ? insn->run_length + 1 : 1;
    }
}

static void build_program(struct builder *builder)
{
    struct program *program = builder->program;
    allocate_temporaries(builder);
    if (!layout_program(builder))
        return;
    for (uint32_t i = 0; i < builder->order_count && !builder->failed; i++) {
        const struct ptx_function *function = builder->order[i];
        if (builder->checked && builder->checked[function->index])
            continue;
        decode_function(builder, function);
        if (builder->checked)
            builder->checked[function->index] = true;
    }
    if (builder->failed || builder->checked)
        return;
    join_calls(builder);
    find_team_handlers(program);
    measure_stretches(program);
    program->entry = program->functions[builder->kernel->index].start;
}

static bool builder_init(struct builder *builder)
{
    const struct ptx_module *module = builder->module;
    builder->program = calloc(1, sizeof(*builder->program));
    builder->layouts = calloc(module->function_count + 1, sizeof(*builder->layouts));
    builder->order = calloc(module->function_count + 1, sizeof(*builder->order));
    builder->shared = malloc((module->variable_count + 1) * sizeof(*builder->shared));
    if (!builder->program || !builder->layouts || !builder->order || !builder->shared)
        return false;
    memset(builder->shared, 0xff, (module->variable_count + 1) * sizeof(*builder->shared));
    builder->program->functions =
        calloc(module->function_count + 1, sizeof(*builder->program->functions));
    if (!builder->program->functions)
        return false;
    builder->program->function_count = module->function_count;
    builder->program->name = builder->kernel->name;
    return true;
}

static void builder_fini(struct builder *builder)
{
    for (uint32_t i = 0; builder->layouts && i < builder->module->function_count; i++) {
        free(builder->layouts[i].registers);
        free(builder->layouts[i].fixed);
        free(builder->layouts[i].variables);
        free(builder->layouts[i].params);
        free(builder->layouts[i].returns);
    }
    free(builder->layouts);
    free(builder->order);
    free(builder->shared);
    free(builder->fixups);
    free(builder->constant_slots);
}

static struct program *run_builder(struct builder *builder, CUresult *ret_result)
{
    builder->dynamic_align = 16;
    if (builder_init(builder))
        build_program(builder);
    else
        decode_fail(builder, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
    builder_fini(builder);
    if (!builder->failed)
        return builder->program;
    program_destroy(builder->program);
    *ret_result = builder->result;
    return NULL;
}

struct program *program_build(const struct variable_addresses *variables,
                              const struct ptx_module *module, const struct ptx_function *kernel,
                              char *log, size_t log_size, CUresult *ret_result)
{
    struct builder builder = {.variables = variables,
                              .module = module,
                              .kernel = kernel,
                              .log = log,
                              .log_size = log_size};
    return run_builder(&builder, ret_result);
}

struct program *program_check(const struct ptx_module *module, const struct ptx_function *kernel,
                              bool *checked, char *log, size_t log_size, CUresult *ret_result)
{
    struct builder builder = {
        .module = module, .kernel = kernel, .checked = checked, .log = log, .log_size = log_size};
    return run_builder(&builder, ret_result);
}

void program_destroy(struct program *program)
{
    if (!program)
        return;
    free(program->code);
    free(program->specials);
    free(program->constants);
    free(program->params);
    free(program->functions);
    free(program->matrices);
    free(program->wgmmas);
    free(program);
}
