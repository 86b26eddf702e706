/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands become offsets into the register file. A constant gets a register that every warp fills
 * at its start. The address of a variable is a constant, and a special register is a register.
 */
#include "operand.h"

#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "load_store.h"
#include "moves.h"
#include "special.h"

unsigned operand_count(const struct builder *builder)
{
    return builder->instruction->operand_count;
}

const struct ptx_operand *operand_at(struct builder *builder, unsigned index)
{
    static const struct ptx_operand none = {.kind = PTX_OPERAND_SINK};
    if (index < builder->instruction->operand_count)
        return &builder->instruction->operands[index];
    decode_malformed(builder, "too few operands");
    return &none;
}

bool is_wide_type(enum ptx_type type)
{
    return ptx_type_size(type) == 8;
}

enum ptx_type register_type(const struct builder *builder, const struct ptx_operand *from)
{
    return builder->function->registers[from->reg].type;
}

bool is_register(const struct builder *builder, const struct ptx_operand *from, bool want_predicate)
{
    return from->kind == PTX_OPERAND_REGISTER &&
           (register_type(builder, from) == PTX_PRED) == want_predicate;
}

static uint32_t register_offset(struct builder *builder, const struct ptx_operand *from)
{
    return layout_of(builder, builder->function)->registers[from->reg];
}

static uint32_t *constant_slot(const struct builder *builder, uint64_t bits, bool is_wide)
{
    uint64_t hash = (bits + is_wide) * 0x9e3779b97f4a7c15;
    for (uint32_t at = (uint32_t)(hash >> 32);; at++) {
        uint32_t *slot = &builder->constant_slots[at & (builder->slot_count - 1)];
        const struct constant *found = *slot ? &builder->program->constants[*slot - 1] : NULL;
        if (!found || (found->bits == bits && found->is_wide == is_wide))
            return slot;
    }
}

/* Doubles the capacity of the constants and of their hash table. */
static bool grow_constants(struct builder *builder)
{
    struct program *program = builder->program;
    uint32_t capacity = builder->constant_capacity ? 2 * builder->constant_capacity : 32;
    struct constant *constants = realloc(program->constants, capacity * sizeof(*constants));
    uint32_t *slots = calloc(2 * capacity, sizeof(*slots));
    if (constants)
        program->constants = constants;
    if (!constants || !slots) {
        free(slots);
        return false;
    }
    free(builder->constant_slots);
    builder->constant_slots = slots;
    builder->slot_count = 2 * capacity;
    builder->constant_capacity = capacity;
    for (uint32_t i = 0; i < program->constant_count; i++)
        *constant_slot(builder, constants[i].bits, constants[i].is_wide) = i + 1;
    return true;
}

uint32_t operand_constant(struct builder *builder, uint64_t bits, bool is_wide)
{
    struct program *program = builder->program;
    if (!is_wide)
        bits = (uint32_t)bits;
    if (program->constant_count == builder->constant_capacity && !grow_constants(builder)) {
        decode_fail(builder, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
        return 0;
    }
    uint32_t *slot = constant_slot(builder, bits, is_wide);
    if (*slot)
        return program->constants[*slot - 1].offset;
    uint32_t offset = builder_allocate_lanes(builder, is_wide ? 8 : 4);
    program->constants[program->constant_count++] =
        (struct constant){.offset = offset, .is_wide = is_wide, .bits = bits};
    *slot = program->constant_count;
    return offset;
}

static bool is_float_type(enum ptx_type type)
{
    return type == PTX_F32 || type == PTX_F64;
}

/* The bits of a literal as a value of this type. */
static uint64_t literal_bits(const struct ptx_operand *from, enum ptx_type type)
{
    bool is_f32 = from->kind == PTX_OPERAND_F32;
    bool same = (is_f32 && !is_wide_type(type)) || (!is_f32 && is_wide_type(type));
    if (from->kind == PTX_OPERAND_INTEGER || (same && !is_float_type(type)) || same)
        return from->bits;
    if (is_f32) {
        float narrow;
        uint32_t low = (uint32_t)from->bits;
        memcpy(&narrow, &low, sizeof(narrow));
        double wide = narrow;
        uint64_t bits;
        memcpy(&bits, &wide, sizeof(bits));
        return bits;
    }
    double wide;
    memcpy(&wide, &from->bits, sizeof(wide));
    float narrow = (float)wide;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof(bits));
    return bits;
}

static bool is_own_param(const struct ptx_symbol *symbol, struct ptx_symbol *const *list,
                         uint32_t count)
{
    return symbol->index < count && list[symbol->index] == symbol;
}

bool operand_frame_offset(struct builder *builder, const struct ptx_symbol *symbol,
                          uint32_t *ret_offset)
{
    const struct ptx_function *function = builder->function;
    const struct layout *layout = layout_of(builder, function);
    if (is_own_param(symbol, function->params, function->param_count)) {
        *ret_offset = layout->params[symbol->index];
        return !function->is_entry;
    }
    if (is_own_param(symbol, function->returns, function->return_count)) {
        *ret_offset = layout->returns[symbol->index];
        return true;
    }
    if (symbol->home == function && symbol->index < function->variable_count) {
        *ret_offset = layout->variables[symbol->index];
        return true;
    }
    decode_malformed(builder, "a variable of another function");
    return true;
}

uint32_t param_offset(struct builder *builder, const struct ptx_symbol *symbol)
{
    return layout_of(builder, builder->function)->params[symbol->index];
}

static uint32_t shared_offset(struct builder *builder, const struct ptx_symbol *symbol)
{
    if (symbol->variable.is_extern || symbol->variable.size == 0)
        return builder->program->dynamic_shared_start;
    if (!symbol->home)
        return builder->shared[symbol->index];
    return layout_of(builder, builder->function)->variables[symbol->index];
}

static uint64_t global_address(struct builder *builder, const struct ptx_symbol *symbol)
{
    return builder->variables ? variable_address(builder->variables, symbol) : 0;
}

/* .local variables, .param ones of functions, and parameters of entries: known when the warp runs.
 */
static uint32_t frame_address(struct builder *builder, const struct ptx_symbol *symbol,
                              uint64_t offset)
{
    uint32_t at;
    bool is_local = operand_frame_offset(builder, symbol, &at);
    uint32_t wide = builder_temporary(builder, true);
    struct insn *insn = builder_emit(builder, is_local ? run_local_address : run_param_address);
    insn->d = wide;
    insn->imm = at + offset;
    return wide;
}

static uint32_t narrowed(struct builder *builder, uint32_t wide)
{
    uint32_t narrow = builder_temporary(builder, false);
    struct insn *insn = builder_emit(builder, run_narrow);
    insn->d = narrow;
    insn->a = wide;
    return narrow;
}

static uint32_t widened(struct builder *builder, uint32_t narrow)
{
    uint32_t wide = builder_temporary(builder, true);
    struct insn *insn = builder_emit(builder, run_widen_u32);
    insn->d = wide;
    insn->a = narrow;
    return wide;
}

/* A texture reference stands for the object that it is bound to. */
static uint32_t reference_source(struct builder *builder, const struct ptx_symbol *symbol)
{
    uint32_t object = builder_temporary(builder, true);
    uint32_t address = operand_constant(builder, global_address(builder, symbol), true);
    struct insn *insn = builder_emit(builder, access_handlers(ACCESS_B64)->load.run);

    insn->d = object;
    insn->b = insn->c = insn->p = NO_OPERAND;
    insn->a = address;
    insn->space = PTX_GLOBAL;
    insn->flags = INSN_WIDE_ADDRESS;
    insn->width = 1;
    return object;
}

static uint32_t symbol_source(struct builder *builder, const struct ptx_operand *from, bool is_wide)
{
    const struct ptx_symbol *symbol = from->symbol;
    if (symbol->kind == PTX_FUNCTION)
        return operand_constant(builder, function_pointer(symbol->function->index), is_wide);
    if (symbol->kind != PTX_VARIABLE) {
        decode_malformed(builder, "a label is not a value");
        return 0;
    }
    if (ptx_type_is_reference(symbol->variable.type) && is_wide)
        return reference_source(builder, symbol);
    switch (symbol->variable.space) {
    case PTX_GLOBAL:
    case PTX_CONST:
        return operand_constant(builder, global_address(builder, symbol) + from->bits, is_wide);
    case PTX_SHARED:
        return operand_constant(builder, shared_offset(builder, symbol) + from->bits, is_wide);
    default: {
        uint32_t wide = frame_address(builder, symbol, from->bits);
        return is_wide ? wide : narrowed(builder, wide);
    }
    }
}

static uint32_t fetch_volatile_special(struct builder *builder, unsigned special)
{
    uint32_t offset = builder_temporary(builder, special_is_wide(special));
    struct insn *insn = builder_emit(builder, run_read_special);
    insn->d = offset;
    insn->imm = special;
    return offset;
}

/* A register that each warp fills at its start. */
static uint32_t special_register(struct builder *builder, unsigned special)
{
    struct program *program = builder->program;
    for (uint32_t i = 0; i < program->special_count; i++) {
        if (program->specials[i].special == special)
            return program->specials[i].offset;
    }
    struct special_use *larger =
        realloc(program->specials, (program->special_count + 1) * sizeof(*larger));
    if (!larger) {
        decode_fail(builder, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
        return 0;
    }
    program->specials = larger;
    uint32_t offset = builder_allocate_lanes(builder, special_is_wide(special) ? 8 : 4);
    larger[program->special_count++] =
        (struct special_use){.special = (uint16_t)special, .offset = offset};
    return offset;
}

/* The special registers of PTX besides those in special.c. */
static bool is_special_of_ptx(const char *name)
{
    return strncmp(name, "%envreg", 7) == 0 || strncmp(name, "%pm", 3) == 0;
}

/* %tid.w and the like, which is always 0. */
static bool is_fourth_of_vector(const char *name)
{
    char first[32];
    size_t length = strlen(name);
    if (length < 2 || length >= sizeof(first) || strcmp(name + length - 2, ".w") != 0)
        return false;
    memcpy(first, name, length);
    first[length - 1] = 'x';
    first[length] = '\0';
    return special_find(first) >= 0;
}

static uint32_t special_source(struct builder *builder, const struct ptx_operand *from,
                               bool is_wide)
{
    int special = special_find(from->name);
    if (special < 0 && is_fourth_of_vector(from->name))
        return operand_constant(builder, 0, is_wide);
    if (special < 0) {
        if (is_special_of_ptx(from->name))
            decode_fail(builder, CUDA_ERROR_NOT_SUPPORTED,
                        "the software GPU does not have register %s", from->name);
        else
            decode_fail(builder, CUDA_ERROR_INVALID_PTX, "register %s is not declared", from->name);
        return 0;
    }
    builder->program->uses_reserved |= special_needs_reserved((unsigned)special);
    uint32_t offset = special_is_volatile((unsigned)special)
                          ? fetch_volatile_special(builder, (unsigned)special)
                          : special_register(builder, (unsigned)special);
    if (special_is_wide((unsigned)special) == is_wide)
        return offset;
    return is_wide ? widened(builder, offset) : narrowed(builder, offset);
}

static uint32_t register_source(struct builder *builder, const struct ptx_operand *from,
                                bool is_wide)
{
    enum ptx_type type = register_type(builder, from);
    if (type == PTX_PRED) {
        decode_malformed(builder, "a predicate where a value is needed");
        return 0;
    }
    uint32_t offset = register_offset(builder, from);
    if (is_wide_type(type) == is_wide)
        return offset;
    if (!is_wide)
        return narrowed(builder, offset);
    decode_malformed(builder, "a register is too narrow");
    return 0;
}

uint32_t operand_source(struct builder *builder, const struct ptx_operand *from, enum ptx_type type)
{
    bool is_wide = is_wide_type(type);
    switch (from->kind) {
    case PTX_OPERAND_REGISTER:
        return register_source(builder, from, is_wide);
    case PTX_OPERAND_INTEGER:
    case PTX_OPERAND_F32:
    case PTX_OPERAND_F64:
        return operand_constant(builder, literal_bits(from, type), is_wide);
    case PTX_OPERAND_SYMBOL:
        return symbol_source(builder, from, is_wide);
    case PTX_OPERAND_SPECIAL:
        return special_source(builder, from, is_wide);
    default:
        decode_malformed(builder, "an operand is of the wrong kind");
        return 0;
    }
}

uint32_t operand_source_predicate(struct builder *builder, const struct ptx_operand *from,
                                  bool *ret_negated)
{
    *ret_negated = from->negated;
    if (is_register(builder, from, true))
        return register_offset(builder, from);
    if (from->kind == PTX_OPERAND_INTEGER)
        return operand_constant(builder, from->bits ? FULL_MASK : 0, false);
    decode_malformed(builder, "a predicate is needed");
    return 0;
}

uint32_t operand_destination_predicate(struct builder *builder, const struct ptx_operand *to)
{
    if (to->kind == PTX_OPERAND_SINK)
        return NO_OPERAND;
    if (is_register(builder, to, true))
        return register_offset(builder, to);
    decode_malformed(builder, "a predicate is needed as the destination");
    return NO_OPERAND;
}

uint32_t operand_destination(struct builder *builder, const struct ptx_operand *to,
                             enum ptx_type type)
{
    if (to->kind == PTX_OPERAND_SINK)
        return builder_temporary(builder, is_wide_type(type));
    if (!is_register(builder, to, false)) {
        decode_malformed(builder, "a register is needed as the destination");
        return 0;
    }
    bool register_is_wide = is_wide_type(register_type(builder, to));
    if (register_is_wide == is_wide_type(type))
        return register_offset(builder, to);
    if (!register_is_wide)
        decode_malformed(builder, "the destination is too narrow");
    return builder_temporary(builder, is_wide_type(type));
}

void operand_finish_destination(struct builder *builder, const struct ptx_operand *to,
                                enum ptx_type type, uint32_t offset)
{
    if (to->kind == PTX_OPERAND_SINK || builder->failed || register_offset(builder, to) == offset)
        return;
    bool is_signed = type == PTX_S8 || type == PTX_S16 || type == PTX_S32;
    struct insn *insn = builder_emit(builder, is_signed ? run_widen_s32 : run_widen_u32);
    insn->d = register_offset(builder, to);
    insn->a = offset;
}
