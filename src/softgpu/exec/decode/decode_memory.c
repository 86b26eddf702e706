/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_memory.h. */
#include "decode_memory.h"

#include <string.h>

#include "atomics.h"
#include "control_flow.h"
#include "decode_access.h"
#include "decode_mbarrier.h"
#include "decode_wide.h"
#include "load_store.h"
#include "moves.h"
#include "operand.h"

/* Of st.async and red.async: the last operand is a barrier that hears of the bytes. */
#define COMPLETES "mbarrier::complete_tx::bytes"

static bool is_ignored(const struct tokens *tokens, unsigned i)
{
    static const char *const words[] = {"nc",  "ca",    "cg",    "cs",      "lu",      "cv",
                                        "wb",  "wt",    "weak",  "cta",     "cluster", "gpu",
                                        "sys", "noftz", "async", "unified", COMPLETES};
    for (unsigned j = 0; j < sizeof(words) / sizeof(words[0]); j++) {
        if (token_is(tokens, i, words[j]))
            return true;
    }
    return token_starts(tokens, i, "L1::") || token_starts(tokens, i, "L2::") ||
           token_starts(tokens, i, "level::");
}

bool token_space(const struct tokens *tokens, unsigned i, enum ptx_space *ret_space)
{
    static const struct {
        const char *word;
        enum ptx_space space;
    } spaces[] = {
        {"global", PTX_GLOBAL},      {"shared", PTX_SHARED},
        {"shared::cta", PTX_SHARED}, {"shared::cluster", PTX_SHARED},
        {"local", PTX_LOCAL},        {"const", PTX_CONST},
        {"param", PTX_PARAM},        {"param::entry", PTX_PARAM},
        {"param::func", PTX_PARAM},
    };
    for (unsigned j = 0; j < sizeof(spaces) / sizeof(spaces[0]); j++) {
        if (token_is(tokens, i, spaces[j].word)) {
            *ret_space = spaces[j].space;
            return true;
        }
    }
    return false;
}

static bool take_modifier(const struct tokens *tokens, unsigned i, struct access *access)
{
    if (token_is(tokens, i, "v2"))
        access->width = 2;
    else if (token_is(tokens, i, "v4"))
        access->width = 4;
    else if (token_is(tokens, i, "volatile") || token_is(tokens, i, "relaxed") ||
             token_is(tokens, i, "acquire") || token_is(tokens, i, "mmio"))
        access->synchronizes = true;
    else if (token_is(tokens, i, "release") || token_is(tokens, i, "acq_rel"))
        access->synchronizes = access->releases = true;
    else if (!token_space(tokens, i, &access->space) && !is_ignored(tokens, i))
        return false;
    access->has_hint |= token_is(tokens, i, "L2::cache_hint");
    return true;
}

/* An instruction that only reads releases nothing, and one without a result acquires nothing. */
static bool has_wrong_order(const struct tokens *tokens, unsigned i)
{
    bool reads = token_is(tokens, 0, "ld");
    bool writes = token_is(tokens, 0, "st") || token_is(tokens, 0, "red");
    return ((reads || writes) && token_is(tokens, i, "acq_rel")) ||
           (reads && token_is(tokens, i, "release")) || (writes && token_is(tokens, i, "acquire"));
}

bool decode_access(struct builder *builder, const struct tokens *tokens, unsigned skip,
                   struct access *ret_access)
{
    struct access access = {.width = 1, .type = last_type(tokens)};
    for (unsigned i = skip; i + 1 < tokens->count; i++) {
        if (has_wrong_order(tokens, i)) {
            decode_malformed(builder, "this memory order is not one of the instruction");
            return false;
        }
        if (!take_modifier(tokens, i, &access)) {
            decode_unsupported(builder);
            return false;
        }
    }
    if (access.type == PTX_NO_TYPE || access.type == PTX_PRED ||
        ptx_type_is_reference(access.type) || access.width * ptx_type_size(access.type) > 16) {
        decode_unsupported(builder);
        return false;
    }
    *ret_access = access;
    return true;
}

/* ---- Addresses ---- */

static void symbol_address(struct builder *builder, const struct ptx_operand *from,
                           const struct ptx_operand *base, struct insn *ret_insn)
{
    struct ptx_operand plain = *base;
    uint32_t at;
    plain.bits = 0;
    if (base->symbol->kind != PTX_VARIABLE) {
        decode_malformed(builder, "an address must be a variable or a register");
        return;
    }
    enum ptx_space home = base->symbol->variable.space;
    ret_insn->imm = from->bits + base->bits;
    if (home == PTX_LOCAL || home == PTX_PARAM) {
        bool is_local = operand_frame_offset(builder, base->symbol, &at);
        ret_insn->imm += at;
        ret_insn->space = is_local ? PTX_LOCAL : PTX_PARAM;
        ret_insn->a =
            is_local ? builder->program->stack_pointer : operand_constant(builder, 0, false);
        return;
    }
    bool is_shared = home == PTX_SHARED;
    ret_insn->space = (uint8_t)home;
    ret_insn->a = operand_source(builder, &plain, is_shared ? PTX_U32 : PTX_U64);
    ret_insn->flags |= is_shared ? 0 : INSN_WIDE_ADDRESS;
}

static void register_address(struct builder *builder, const struct ptx_operand *from,
                             const struct ptx_operand *base, enum ptx_space space,
                             struct insn *ret_insn)
{
    bool is_wide = is_wide_type(register_type(builder, base));
    /* Inside a device function a parameter's address is one of the frame. */
    if (space == PTX_PARAM && !builder->function->is_entry)
        space = PTX_LOCAL;
    ret_insn->space = (uint8_t)space;
    ret_insn->a = operand_source(builder, base, is_wide ? PTX_U64 : PTX_U32);
    ret_insn->imm = from->bits;
    ret_insn->flags |= is_wide ? INSN_WIDE_ADDRESS : 0;
}

void decode_address(struct builder *builder, const struct ptx_operand *from, enum ptx_space space,
                    struct insn *ret_insn)
{
    const struct ptx_operand *base = from->count ? &from->elements[0] : NULL;
    if (from->kind != PTX_OPERAND_ADDRESS || from->count > 1) {
        decode_malformed(builder, "an address is needed");
    } else if (!base) {
        ret_insn->space = (uint8_t)space;
        ret_insn->a = operand_constant(builder, from->bits, true);
        ret_insn->flags |= INSN_WIDE_ADDRESS;
    } else if (base->kind == PTX_OPERAND_SYMBOL) {
        symbol_address(builder, from, base, ret_insn);
    } else if (is_register(builder, base, false)) {
        register_address(builder, from, base, space, ret_insn);
    } else {
        decode_malformed(builder, "an address needs a register or a variable");
    }
}

/* ---- Loads and stores ---- */

static const struct access_handlers *handlers_of(enum ptx_type type)
{
    switch (ptx_type_size(type)) {
    case 1:
        return access_handlers(type == PTX_S8 ? ACCESS_S8 : ACCESS_U8);
    case 2:
        return access_handlers(type == PTX_S16 ? ACCESS_S16 : ACCESS_U16);
    case 4:
        return access_handlers(ACCESS_B32);
    default:
        return access_handlers(ACCESS_B64);
    }
}

/* The elements of {a, b}, or the operand itself. */
static const struct ptx_operand *vector_element(const struct ptx_operand *from, unsigned index)
{
    return from->kind == PTX_OPERAND_LIST ? &from->elements[index] : from;
}

static bool has_width(struct builder *builder, const struct ptx_operand *from, unsigned width)
{
    bool fits = from->kind == PTX_OPERAND_LIST ? from->count == width : width == 1;
    if (!fits)
        decode_malformed(builder, "the vector has the wrong number of elements");
    return fits;
}

static void set_elements(struct insn *insn, const uint32_t elements[4])
{
    insn->d = elements[0];
    insn->b = elements[1];
    insn->c = elements[2];
    insn->p = elements[3];
}

/* The type of the register that a value of this type is in. */
static enum ptx_type lane_type(enum ptx_type type)
{
    return ptx_type_size(type) == 8                               ? type
           : type == PTX_S8 || type == PTX_S16 || type == PTX_S32 ? PTX_S32
                                                                  : PTX_B32;
}

/* A parameter at an offset known now needs no check at run time. */
static bool is_fixed_param(struct builder *builder, const struct insn *insn, unsigned size)
{
    bool fixed = insn->space == PTX_PARAM && !(insn->flags & INSN_WIDE_ADDRESS);
    uint32_t all = kernel_params_size(builder->kernel);
    if (fixed && (size > all || insn->imm > all - size)) {
        decode_malformed(builder, "a load beyond the parameters");
        return false;
    }
    return fixed;
}

void decode_load(struct builder *builder, const struct tokens *tokens)
{
    struct access access;
    if (!decode_access(builder, tokens, 1, &access) ||
        !has_width(builder, operand_at(builder, 0), access.width))
        return;
    if (access.type == PTX_B128) {
        decode_load_b128(builder, &access);
        return;
    }
    struct insn where = {0};
    uint32_t elements[4] = {NO_OPERAND, NO_OPERAND, NO_OPERAND, NO_OPERAND};
    enum ptx_type type = lane_type(access.type);
    decode_address(builder, operand_at(builder, 1), access.space, &where);
    for (unsigned i = 0; i < access.width && !builder->failed; i++) {
        const struct ptx_operand *to = vector_element(operand_at(builder, 0), i);
        if (to->kind != PTX_OPERAND_SINK)
            elements[i] = operand_destination(builder, to, type);
    }
    if (builder->failed)
        return;
    const struct access_handlers *handlers = handlers_of(access.type);
    bool fixed = is_fixed_param(builder, &where, access.width * ptx_type_size(access.type));
    handler_fn load = access.width == 1 ? handlers->load.run : handlers->load_vector;
    struct insn *insn = builder_emit(builder, fixed ? handlers->load_param : load);
    insn->a = where.a;
    insn->imm = where.imm;
    insn->space = where.space;
    insn->flags = where.flags | (access.synchronizes ? INSN_SYNCHRONIZES : 0);
    insn->width = access.width;
    set_elements(insn, elements);
    for (unsigned i = 0; i < access.width; i++) {
        if (elements[i] != NO_OPERAND)
            operand_finish_destination(builder, vector_element(operand_at(builder, 0), i), type,
                                       elements[i]);
    }
}

void decode_store(struct builder *builder, const struct tokens *tokens)
{
    struct access access;
    if (!decode_access(builder, tokens, 1, &access) ||
        !has_width(builder, operand_at(builder, 1), access.width))
        return;
    if (access.type == PTX_B128) {
        decode_store_b128(builder, &access);
        return;
    }
    struct insn where = {0};
    uint32_t elements[4] = {NO_OPERAND, NO_OPERAND, NO_OPERAND, NO_OPERAND};
    decode_address(builder, operand_at(builder, 0), access.space, &where);
    /* The type as given says how a literal is read; its size how wide the register is. */
    enum ptx_type type = ptx_type_size(access.type) >= 4 ? access.type : PTX_B32;
    for (unsigned i = 0; i < access.width && !builder->failed; i++)
        elements[i] = operand_source(builder, vector_element(operand_at(builder, 1), i), type);
    const struct access_handlers *handlers = handlers_of(access.type);
    struct insn *insn =
        builder_emit(builder, access.width == 1 ? handlers->store.run : handlers->store_vector);
    insn->a = where.a;
    insn->imm = where.imm;
    insn->space = where.space;
    insn->flags = where.flags | (access.synchronizes ? INSN_SYNCHRONIZES : 0);
    insn->flags |= access.releases ? INSN_FENCE_BEFORE : 0;
    insn->width = access.width;
    set_elements(insn, elements);
    if (token_find(tokens, COMPLETES) >= 0)
        emit_completion(builder, 2, access.space, access.width * ptx_type_size(access.type));
}

/* ---- Atomics ---- */

int decode_atomic_op(const struct tokens *tokens, unsigned *ret_at)
{
    static const char *const names[ATOMIC_OP_COUNT] = {"add", "min", "max", "inc",  "dec",
                                                       "and", "or",  "xor", "exch", "cas"};
    for (int op = 0; op < ATOMIC_OP_COUNT; op++) {
        int at = token_find(tokens, names[op]);
        if (at >= 0) {
            *ret_at = (unsigned)at;
            return op;
        }
    }
    return -1;
}

static struct tokens without(const struct tokens *tokens, unsigned at)
{
    struct tokens rest = *tokens;
    for (unsigned i = at; i + 1 < rest.count; i++) {
        rest.text[i] = rest.text[i + 1];
        rest.length[i] = rest.length[i + 1];
    }
    rest.count--;
    return rest;
}

/* Additions of f32, and everything of halves, may come as vectors of up to four. */
static bool is_atomic_vector(const struct access *access, int op)
{
    bool is_pair = access->type == PTX_F16X2 || access->type == PTX_BF16X2;
    bool is_half = access->type == PTX_F16 || access->type == PTX_BF16;
    return access->space != PTX_SHARED &&
           (access->type == PTX_F32 ? op == ATOMIC_ADD : is_pair || is_half);
}

/* One element of a vector, each an atomic operation of its own, or all there is. */
static void emit_atomic(struct builder *builder, const struct access *access, int op, bool is_red,
                        unsigned index)
{
    unsigned first = is_red ? 0 : 1;
    enum ptx_type type = ptx_type_size(access->type) < 4 ? PTX_B32 : access->type;
    struct insn where = {0};
    decode_address(builder, operand_at(builder, first), access->space, &where);
    uint32_t b =
        operand_source(builder, vector_element(operand_at(builder, first + 1), index), type);
    uint32_t c = op == ATOMIC_CAS ? operand_source(builder, operand_at(builder, first + 2), type)
                                  : NO_OPERAND;
    const struct ptx_operand *to = vector_element(operand_at(builder, 0), index);
    bool has_result = !is_red && to->kind != PTX_OPERAND_SINK;
    uint32_t d = has_result ? operand_destination(builder, to, type) : NO_OPERAND;
    struct insn *insn = builder_emit(builder, atomic_handler((enum atomic_op)op, access->type));
    insn->d = d;
    insn->a = where.a;
    insn->b = b;
    insn->c = c;
    insn->imm = where.imm + index * ptx_type_size(access->type);
    insn->space = where.space;
    insn->flags = where.flags;
    insn->mode = (uint8_t)op;
    if (has_result)
        operand_finish_destination(builder, to, type, d);
}

/* atom d, [a], b{, c} and red [a], b */
void decode_atomic(struct builder *builder, const struct tokens *tokens)
{
    unsigned at;
    struct access access;
    int op = decode_atomic_op(tokens, &at);
    if (op < 0) {
        decode_unsupported(builder);
        return;
    }
    struct tokens rest = without(tokens, at);
    if (!decode_access(builder, &rest, 1, &access))
        return;
    bool is_red = token_is(tokens, 0, "red");
    if (access.type == PTX_B128 && !is_red && (op == ATOMIC_EXCH || op == ATOMIC_CAS)) {
        decode_atomic_b128(builder, &access, op == ATOMIC_CAS);
        return;
    }
    if (!atomic_handler((enum atomic_op)op, access.type) ||
        (access.width != 1 && !is_atomic_vector(&access, op))) {
        decode_unsupported(builder);
        return;
    }
    if (access.width != 1 &&
        (!has_width(builder, operand_at(builder, is_red ? 1 : 2), access.width) ||
         (!is_red && !has_width(builder, operand_at(builder, 0), access.width))))
        return;
    for (unsigned i = 0; i < access.width; i++)
        emit_atomic(builder, &access, op, is_red, i);
    if (token_find(tokens, COMPLETES) >= 0)
        emit_completion(builder, 2, access.space, ptx_type_size(access.type));
}
