/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_tensor.h. */
#include "decode_tensor.h"

#include "atomics.h"
#include "control_flow.h"
#include "cuda_tensor_map.h"
#include "decode_access.h"
#include "decode_memory.h"
#include "operand.h"
#include "tensor_copy.h"
#include "tensor_replace.h"

struct tensor_words {
    unsigned rank;
    enum ptx_space spaces[2]; /* to, from */
    unsigned space_count;
    bool has_barrier;
    bool is_multicast;
    bool is_im2col;
    bool has_offsets; /* im2col, but not im2col_no_offs */
    int op;           /* of a reduction, or -1 */
};

static bool take_rank(const struct tokens *tokens, unsigned i, struct tensor_words *words)
{
    static const char *const names[] = {"1d", "2d", "3d", "4d", "5d"};

    for (unsigned rank = 1; rank <= CUDA_TENSOR_RANK_MAX; rank++)
        if (token_is(tokens, i, names[rank - 1]))
            words->rank = rank;
    return words->rank > 0;
}

static bool take_op(const struct tokens *tokens, unsigned i, struct tensor_words *words)
{
    static const char *const names[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};

    for (int op = 0; op < (int)(sizeof(names) / sizeof(names[0])); op++) {
        if (token_is(tokens, i, names[op])) {
            words->op = op;
            return true;
        }
    }
    return false;
}

static bool take_word(const struct tokens *tokens, unsigned i, struct tensor_words *words)
{
    if (words->space_count < 2 && token_space(tokens, i, &words->spaces[words->space_count])) {
        words->space_count++;
        return true;
    }
    words->has_barrier |= token_is(tokens, i, "mbarrier::complete_tx::bytes");
    words->is_multicast |= token_is(tokens, i, "multicast::cluster");
    words->has_offsets |= token_is(tokens, i, "im2col");
    words->is_im2col |= token_is(tokens, i, "im2col") || token_is(tokens, i, "im2col_no_offs");
    return take_op(tokens, i, words) || token_is(tokens, i, "mbarrier::complete_tx::bytes") ||
           token_is(tokens, i, "multicast::cluster") || token_is(tokens, i, "im2col") ||
           token_is(tokens, i, "im2col_no_offs") || token_is(tokens, i, "tile") ||
           token_is(tokens, i, "bulk_group") || token_is(tokens, i, "L2::cache_hint");
}

static bool take_words(const struct tokens *tokens, unsigned first, struct tensor_words *ret_words)
{
    struct tensor_words words = {.op = -1};

    if (!take_rank(tokens, first, &words))
        return false;
    for (unsigned i = first + 1; i < tokens->count; i++)
        if (!take_word(tokens, i, &words))
            return false;
    *ret_words = words;
    return words.space_count == 2;
}

/* {a, b, ...} into slots. */
static void take_list(struct builder *builder, const struct ptx_operand *list, unsigned count,
                      enum ptx_type type, uint32_t *ret_slots)
{
    if (list->kind != PTX_OPERAND_LIST || list->count != count) {
        decode_malformed(builder, "the wrong number of coordinates or offsets");
        return;
    }
    for (unsigned i = 0; i < count && !builder->failed; i++)
        ret_slots[i] = operand_source(builder, &list->elements[i], type);
}

/* [map, {coordinates}] */
static void take_place(struct builder *builder, const struct ptx_operand *place, unsigned rank,
                       struct insn *ret_map, uint32_t *ret_slots)
{
    struct ptx_operand address = *place;

    if (place->kind != PTX_OPERAND_ADDRESS || place->count != 2) {
        decode_malformed(builder, "a tensor map and coordinates are needed");
        return;
    }
    address.count = 1;
    decode_address(builder, &address, PTX_NO_SPACE, ret_map);
    take_list(builder, &place->elements[1], rank, PTX_S32, ret_slots);
}

static void put_address(struct insn *insn, const struct insn *where)
{
    insn->a = where->a;
    insn->imm = where->imm;
    insn->flags |= where->flags;
    insn->space = where->space;
}

static void carry(struct builder *builder, const uint32_t four[4])
{
    struct insn *insn = builder_emit(builder, run_nop);

    insn->d = four[0];
    insn->b = four[1];
    insn->c = four[2];
    insn->p = four[3];
}

static uint8_t mode_of(const struct tensor_words *words, bool is_load)
{
    return is_load          ? TENSOR_LOAD
           : words->op >= 0 ? (uint8_t)(TENSOR_REDUCE + words->op)
                            : TENSOR_STORE;
}

/* Loads: [shared], [map, {coordinates}], [barrier]{, {offsets}}{, mask}; else [map, {coordinates}],
 * [shared]. A policy for the cache may follow. */
static void emit_copy(struct builder *builder, const struct tensor_words *words, bool is_load)
{
    struct insn shared = {0}, map = {0}, barrier = {0};
    uint32_t slots[TENSOR_COPY_SLOTS], mask = NO_OPERAND;
    unsigned next = 3;

    for (unsigned i = 0; i < TENSOR_COPY_SLOTS; i++)
        slots[i] = NO_OPERAND;
    decode_address(builder, operand_at(builder, is_load ? 0 : 1), PTX_SHARED, &shared);
    take_place(builder, operand_at(builder, is_load ? 1 : 0), words->rank, &map, slots);
    if (words->has_barrier)
        decode_address(builder, operand_at(builder, 2), PTX_SHARED, &barrier);
    if (words->has_offsets)
        take_list(builder, operand_at(builder, next++), words->rank - 2, PTX_U16,
                  slots + CUDA_TENSOR_RANK_MAX);
    if (words->is_multicast)
        mask = operand_source(builder, operand_at(builder, next), PTX_U16);
    struct insn *insn = builder_emit(builder, run_tensor_copy);
    put_address(insn, &shared);
    insn->flags |= words->is_im2col ? TENSOR_COPY_IM2COL : 0;
    insn->c = mask;
    insn->p = words->has_barrier ? 0 : NO_OPERAND;
    insn->mode = mode_of(words, is_load);
    insn->width = (uint8_t)words->rank;
    put_address(builder_emit(builder, run_nop), &map);
    put_address(builder_emit(builder, run_nop), &barrier);
    carry(builder, slots);
    carry(builder, slots + 4);
}

static bool words_agree(const struct tensor_words *words, bool is_load, bool reduces)
{
    bool loads = words->spaces[0] == PTX_SHARED && words->spaces[1] == PTX_GLOBAL;
    bool stores = words->spaces[0] == PTX_GLOBAL && words->spaces[1] == PTX_SHARED;

    return (is_load ? loads && words->has_barrier : stores && !words->has_barrier) &&
           reduces == (words->op >= 0) && (is_load || !words->is_multicast) &&
           is_load >= words->has_offsets && (!words->is_im2col || words->rank >= 3) &&
           (!is_load || words->has_offsets == words->is_im2col);
}

/* cp.async.bulk.tensor..., cp.reduce.async.bulk.tensor..., cp.async.bulk.prefetch.tensor...: the
 * last moves nothing that a program could see. */
void decode_tensor_copy(struct builder *builder, const struct tokens *tokens)
{
    struct tensor_words words;
    bool reduces = token_is(tokens, 1, "reduce");
    unsigned first = (unsigned)token_find(tokens, "tensor") + 1;
    bool is_load = token_starts(tokens, first + 1, "shared");

    if (token_find(tokens, "prefetch") >= 0)
        builder_emit(builder, run_nop);
    else if (take_words(tokens, first, &words) && words_agree(&words, is_load, reduces))
        emit_copy(builder, &words, is_load);
    else
        decode_unsupported(builder);
}

/* ---- tensormap ---- */

static const struct {
    const char *name;
    bool has_index;
    bool is_wide;
} fields[TENSOR_FIELD_COUNT] = {
    [TENSOR_FIELD_ADDRESS] = {"global_address", false, true},
    [TENSOR_FIELD_RANK] = {"rank", false, false},
    [TENSOR_FIELD_BOX] = {"box_dim", true, false},
    [TENSOR_FIELD_DIM] = {"global_dim", true, false},
    [TENSOR_FIELD_STRIDE] = {"global_stride", true, true},
    [TENSOR_FIELD_ELEMENT_STRIDE] = {"element_stride", true, false},
    [TENSOR_FIELD_TYPE] = {"elemtype", false, false},
    [TENSOR_FIELD_INTERLEAVE] = {"interleave_layout", false, false},
    [TENSOR_FIELD_SWIZZLE] = {"swizzle_mode", false, false},
    [TENSOR_FIELD_FILL] = {"fill_mode", false, false},
};

static int take_field(const struct tokens *tokens)
{
    for (int field = 0; field < TENSOR_FIELD_COUNT; field++)
        if (token_is(tokens, 3, fields[field].name))
            return field;
    return -1;
}

/* [map]{, index}, value */
static void emit_replace(struct builder *builder, int field, enum ptx_space space)
{
    bool has_index = fields[field].has_index, is_wide = fields[field].is_wide;
    const struct ptx_operand *index = has_index ? operand_at(builder, 1) : NULL;
    unsigned limit = CUDA_TENSOR_RANK_MAX - (field == TENSOR_FIELD_STRIDE);
    struct insn where = {0};

    if (index && (index->kind != PTX_OPERAND_INTEGER || index->bits >= limit)) {
        decode_malformed(builder, "no dimension of a tensor map");
        return;
    }
    decode_address(builder, operand_at(builder, 0), space, &where);
    uint32_t value = operand_source(builder, operand_at(builder, has_index ? 2 : 1),
                                    is_wide ? PTX_B64 : PTX_B32);
    struct insn *insn = builder_emit(builder, run_tensor_replace);
    put_address(insn, &where);
    insn->b = value;
    insn->mode = (uint8_t)field;
    insn->width = index ? (uint8_t)index->bits : 0;
}

/* tensormap.cp_fenceproxy.global.shared::cta... [to], [from], 128 */
static void emit_map_copy(struct builder *builder)
{
    struct insn to = {0}, from = {0};

    decode_address(builder, operand_at(builder, 0), PTX_GLOBAL, &to);
    decode_address(builder, operand_at(builder, 1), PTX_SHARED, &from);
    put_address(builder_emit(builder, run_tensor_map_copy), &to);
    put_address(builder_emit(builder, run_nop), &from);
}

/* tensormap.replace.tile.field{.global .shared::cta}.b1024.{b32 b64} */
void decode_tensor_map(struct builder *builder, const struct tokens *tokens)
{
    enum ptx_space space = PTX_NO_SPACE;
    int field = take_field(tokens);

    token_space(tokens, 4, &space);
    if (token_is(tokens, 1, "cp_fenceproxy"))
        emit_map_copy(builder);
    else if (token_is(tokens, 1, "replace") && token_is(tokens, 2, "tile") && field >= 0)
        emit_replace(builder, field, space);
    else
        decode_unsupported(builder);
}
