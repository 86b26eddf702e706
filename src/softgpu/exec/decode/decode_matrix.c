/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions on matrices: mma, wmma, ldmatrix, stmatrix, movmatrix.
 *
 * Their operands do not fit into an insn, so they are in the program's list of matrix_op.
 */
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "decode_access.h"
#include "decode_alu.h"
#include "decode_matrix.h"
#include "decode_memory.h"
#include "operand.h"

static const struct {
    const char *name;
    uint8_t bits;
} elements[FRAGMENT_ELEMENT_COUNT] = {
    [FRAGMENT_F16] = {"f16", 16},  [FRAGMENT_BF16] = {"bf16", 16}, [FRAGMENT_TF32] = {"tf32", 32},
    [FRAGMENT_E4M3] = {"e4m3", 8}, [FRAGMENT_E5M2] = {"e5m2", 8},  [FRAGMENT_F32] = {"f32", 32},
    [FRAGMENT_F64] = {"f64", 64},  [FRAGMENT_S8] = {"s8", 8},      [FRAGMENT_U8] = {"u8", 8},
    [FRAGMENT_S4] = {"s4", 4},     [FRAGMENT_U4] = {"u4", 4},      [FRAGMENT_B1] = {"b1", 1},
    [FRAGMENT_S32] = {"s32", 32},
};

#define IS(element) (1u << FRAGMENT_##element)
#define HALVES (IS(F16) | IS(BF16))
#define FP8 (IS(E4M3) | IS(E5M2))
#define BYTES (IS(S8) | IS(U8))
#define NIBBLES (IS(S4) | IS(U4))

struct shape {
    uint32_t elements; /* of A and B */
    uint8_t m, n;
    uint16_t k;
};

static const struct shape mma_shapes[] = {
    {HALVES, 16, 8, 8},  {HALVES, 16, 8, 16},  {IS(TF32), 16, 8, 4}, {IS(TF32), 16, 8, 8},
    {FP8, 16, 8, 16},    {FP8, 16, 8, 32},     {IS(F64), 8, 8, 4},   {IS(F64), 16, 8, 4},
    {IS(F64), 16, 8, 8}, {IS(F64), 16, 8, 16}, {BYTES, 8, 8, 16},    {BYTES, 16, 8, 16},
    {BYTES, 16, 8, 32},  {NIBBLES, 8, 8, 32},  {NIBBLES, 16, 8, 32}, {NIBBLES, 16, 8, 64},
    {IS(B1), 8, 8, 128}, {IS(B1), 16, 8, 128}, {IS(B1), 16, 8, 256}, {0},
};

/* Selectors are as many as there are groups of lanes, in each four, that metadata fits into. */
static const struct shape sparse_shapes[] = {
    {HALVES, 16, 8, 16},   {HALVES, 16, 8, 32},
    {IS(TF32), 16, 8, 8},  {IS(TF32), 16, 8, 16},
    {FP8, 16, 8, 64},      {BYTES, 16, 8, 32},
    {BYTES, 16, 8, 64},    {NIBBLES, 16, 8, 64},
    {NIBBLES, 16, 8, 128}, {0},
};

/* Four of them at once. */
static const struct shape quad_shapes[] = {{IS(F16), 8, 8, 4}, {0}};

static const struct shape wmma_shapes[] = {
    {HALVES | BYTES, 16, 16, 16}, {HALVES | BYTES, 32, 8, 16},
    {HALVES | BYTES, 8, 32, 16},  {IS(TF32), 16, 16, 8},
    {IS(F64), 8, 8, 4},           {NIBBLES, 8, 8, 32},
    {IS(B1), 8, 8, 128},          {0},
};

unsigned matrix_elements(const struct tokens *tokens, enum fragment_element ret_elements[4])
{
    unsigned count = 0;
    for (unsigned i = 1; i < tokens->count; i++) {
        for (int element = 0; element < FRAGMENT_ELEMENT_COUNT && count < 4; element++) {
            if (token_is(tokens, i, elements[element].name))
                ret_elements[count++] = (enum fragment_element)element;
        }
    }
    return count;
}

static unsigned long parse_number(const char **at)
{
    char *end;
    unsigned long value = strtoul(*at, &end, 10);
    *at = end;
    return value;
}

/* m16n8k16 */
static bool take_shape(const struct tokens *tokens, struct matrix_op *op)
{
    for (unsigned i = 1; i < tokens->count; i++) {
        const char *at = tokens->text[i];
        if (at[0] != 'm' || at[1] < '0' || at[1] > '9')
            continue;
        at++;
        op->m = (uint8_t)parse_number(&at);
        if (*at++ != 'n')
            return false;
        op->n = (uint8_t)parse_number(&at);
        if (*at++ != 'k')
            return false;
        op->k = (uint16_t)parse_number(&at);
        return at == tokens->text[i] + tokens->length[i];
    }
    return false;
}

static bool has_shape(const struct shape *shapes, const struct matrix_op *op, uint32_t wanted)
{
    for (; shapes->elements; shapes++) {
        if ((shapes->elements & wanted) == wanted && shapes->m == op->m && shapes->n == op->n &&
            shapes->k == op->k)
            return true;
    }
    return false;
}

struct fragment matrix_fragment(enum fragment_element element)
{
    return (struct fragment){.element = element,
                             .bits = elements[element].bits,
                             .word = element == FRAGMENT_F64 ? 8 : 4};
}

/* How many registers a lane has of it. wmma holds parts of an f16 A or B more than once. */
static unsigned register_count(const struct matrix_op *op, const struct fragment *fragment,
                               enum fragment_use use, bool is_wmma)
{
    unsigned sides = use == FRAGMENT_A   ? op->m * fragment->depth
                     : use == FRAGMENT_B ? op->n * fragment->depth
                                         : op->m * op->n;
    if (is_wmma && fragment->element == FRAGMENT_F16 && use != FRAGMENT_ACCUMULATOR)
        return 8;
    return (op->in_quads ? 4 : 1) * sides * fragment->bits / (8u * fragment->word * LANES);
}

static enum ptx_type register_type_of(const struct fragment *fragment)
{
    return fragment->word == 8 ? PTX_B64 : PTX_B32;
}

static void take_registers(struct builder *builder, const struct ptx_operand *from, unsigned count,
                           bool is_destination, struct fragment *fragment)
{
    bool is_list = from->kind == PTX_OPERAND_LIST;
    if ((is_list ? from->count : 1) != count || count > FRAGMENT_REGISTERS) {
        decode_malformed(builder, "a matrix has the wrong number of registers");
        return;
    }
    fragment->count = (uint8_t)count;
    for (unsigned i = 0; i < count; i++) {
        const struct ptx_operand *one = is_list ? &from->elements[i] : from;
        fragment->registers[i] = is_destination
                                     ? operand_destination(builder, one, register_type_of(fragment))
                                     : operand_source(builder, one, register_type_of(fragment));
    }
}

/* The number of a copy of it in the program. */
static uint32_t keep_op(struct builder *builder, const struct matrix_op *op)
{
    struct program *program = builder->program;
    struct matrix_op *larger =
        realloc(program->matrices, (program->matrix_count + 1) * sizeof(*larger));
    if (!larger) {
        decode_fail(builder, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
        return 0;
    }
    program->matrices = larger;
    larger[program->matrix_count] = *op;
    return program->matrix_count++;
}

/* ---- Multiplying ---- */

static handler_fn multiplication(const struct matrix_op *op)
{
    if (op->in_quads)
        return run_multiply_quads;
    switch (op->a.element) {
    case FRAGMENT_F64:
        return matrix_handlers()->multiply_f64;
    case FRAGMENT_B1:
        return matrix_handlers()->multiply_bits;
    case FRAGMENT_S8:
    case FRAGMENT_U8:
    case FRAGMENT_S4:
    case FRAGMENT_U4:
        return matrix_handlers()->multiply_s32;
    default:
        return matrix_handlers()->multiply_f32;
    }
}

bool matrix_is_accumulator(enum fragment_element of, enum fragment_element accumulator)
{
    switch (of) {
    case FRAGMENT_F64:
        return accumulator == FRAGMENT_F64;
    case FRAGMENT_F16:
    case FRAGMENT_E4M3:
    case FRAGMENT_E5M2:
        return accumulator == FRAGMENT_F32 || accumulator == FRAGMENT_F16;
    case FRAGMENT_BF16:
    case FRAGMENT_TF32:
        return accumulator == FRAGMENT_F32;
    default:
        return accumulator == FRAGMENT_S32;
    }
}

bool matrix_may_meet(enum fragment_element a, enum fragment_element b)
{
    uint32_t both = 1u << a | 1u << b;
    return a == b || (both & ~FP8) == 0 || (both & ~BYTES) == 0 || (both & ~NIBBLES) == 0;
}

/* Types come as d, a, b, c; wmma of f16 names only those of d and c. */
static bool take_types(const struct tokens *tokens, bool is_wmma, struct matrix_op *op)
{
    enum fragment_element types[4];
    unsigned count = matrix_elements(tokens, types);
    if (count == 2 && is_wmma) {
        types[3] = types[1];
        types[1] = types[2] = FRAGMENT_F16;
    } else if (count != 4) {
        return false;
    }
    op->d = matrix_fragment(types[0]);
    op->a = matrix_fragment(types[1]);
    op->b = matrix_fragment(types[2]);
    op->c = matrix_fragment(types[3]);
    op->a.depth = op->is_sparse ? op->k / 2 : op->k;
    op->b.depth = op->k;
    return matrix_may_meet(types[1], types[2]) && matrix_is_accumulator(types[1], types[0]) &&
           matrix_is_accumulator(types[1], types[3]);
}

/* 0 to 3, as insn.environment has it. */
static unsigned take_rounding(const struct tokens *tokens)
{
    int rounding = -1;
    for (unsigned i = 1; i < tokens->count && rounding < 0; i++)
        rounding = token_rounding(tokens, i);
    return rounding < 0 ? 0 : (unsigned)rounding;
}

/* The opcode's data of one of these shapes; false if it is another, or says what cannot be. */
static bool take_multiplication(const struct tokens *tokens, const struct shape *shapes,
                                bool is_wmma, struct matrix_op *op)
{
    op->saturates = token_find(tokens, "satfinite") >= 0;
    op->counts_and = token_find(tokens, "and") >= 0;
    if (!take_shape(tokens, op) || !take_types(tokens, is_wmma, op) ||
        !has_shape(shapes, op, 1u << op->a.element | 1u << op->b.element))
        return false;
    bool counts = token_find(tokens, "popc") >= 0;
    return counts == (op->a.element == FRAGMENT_B1) &&
           (op->d.element == FRAGMENT_S32 || !op->saturates) &&
           (op->d.element == FRAGMENT_F64 || take_rounding(tokens) == 0);
}

/* For f64 inside the floating-point environment that the opcode asks for. */
static void emit_multiply(struct builder *builder, const struct tokens *tokens, bool is_wmma,
                          struct matrix_op *op)
{
    struct fragment *const fragments[4] = {&op->d, &op->a, &op->b, &op->c};
    static const enum fragment_use uses[4] = {FRAGMENT_ACCUMULATOR, FRAGMENT_A, FRAGMENT_B,
                                              FRAGMENT_ACCUMULATOR};
    for (unsigned i = 0; i < 4; i++) {
        unsigned count = register_count(op, fragments[i], uses[i], is_wmma);
        take_registers(builder, operand_at(builder, i), count, i == 0, fragments[i]);
    }
    struct insn *insn = builder_emit(builder, NULL);
    set_handler(insn, multiplication(op), take_rounding(tokens));
    insn->matrix = keep_op(builder, op);
}

/* ---- mma ---- */

/* Operands behind the matrices: the metadata's register, and which lanes of each four have it. */
static void take_metadata(struct builder *builder, struct matrix_op *op)
{
    const struct ptx_operand *metadata = operand_at(builder, 4), *selector = operand_at(builder, 5);
    unsigned chunk = op->a.bits == 32 ? 2 : op->a.bits == 4 ? 8 : 4;
    unsigned lanes = op->k / chunk / 4;
    if (!is_register(builder, metadata, false)) {
        decode_malformed(builder, "metadata is not in a register");
    } else if (selector->kind != PTX_OPERAND_INTEGER || selector->bits >= 4 / lanes) {
        decode_malformed(builder, "no lanes for this sparsity selector");
    } else {
        op->metadata = operand_source(builder, metadata, PTX_B32);
        op->teller = (uint8_t)(selector->bits * lanes);
    }
}

/* mma{.sp{::ordered_metadata}}.sync.aligned.shape.row.col..., the words before the types */
static bool is_mma(const struct tokens *tokens, bool is_sparse)
{
    unsigned at = is_sparse ? 2 : 1;
    return token_is(tokens, at, "sync") && token_is(tokens, at + 1, "aligned") &&
           token_is(tokens, at + 3, "row") && token_is(tokens, at + 4, "col");
}

/* mma.sync.aligned.m8n8k4.alayout.blayout.dtype.f16.f16.ctype */
static bool take_quads(const struct tokens *tokens, struct matrix_op *op)
{
    bool a_in_columns = token_is(tokens, 4, "col"), b_in_rows = token_is(tokens, 5, "row");
    bool has_layouts =
        (a_in_columns || token_is(tokens, 4, "row")) && (b_in_rows || token_is(tokens, 5, "col"));
    if (!token_is(tokens, 1, "sync") || !has_layouts ||
        !take_multiplication(tokens, quad_shapes, false, op))
        return false;
    op->a.across = a_in_columns;
    op->b.across = b_in_rows;
    return op->d.element == FRAGMENT_F32 || op->c.element == FRAGMENT_F16;
}

/* ...{.satfinite}{.rnd}.dtype.atype.btype.ctype{.bitop.popc} */
void decode_mma(struct builder *builder, const struct tokens *tokens)
{
    bool is_sparse = token_is(tokens, 1, "sp") || token_is(tokens, 1, "sp::ordered_metadata");
    const struct shape *shapes = is_sparse ? sparse_shapes : mma_shapes;
    struct matrix_op op = {.is_sparse = is_sparse}, quads = {.in_quads = true};
    if (is_mma(tokens, is_sparse) && take_multiplication(tokens, shapes, false, &op) &&
        op.d.element == op.c.element) {
        if (is_sparse)
            take_metadata(builder, &op);
        emit_multiply(builder, tokens, false, &op);
    } else if (take_quads(tokens, &quads)) {
        emit_multiply(builder, tokens, false, &quads);
    } else {
        decode_unsupported(builder);
    }
}

/* ---- wmma in memory ---- */

/* An f16 accumulator and an f16 A are told apart by their use alone. */
static bool is_loadable(const struct matrix_op *op)
{
    uint32_t element = 1u << op->d.element;
    if (op->use != FRAGMENT_ACCUMULATOR)
        return has_shape(wmma_shapes, op, element);
    switch (op->d.element) {
    case FRAGMENT_F16:
        return has_shape(wmma_shapes, op, IS(F16));
    case FRAGMENT_F32:
        return has_shape(wmma_shapes, op, IS(F16)) || has_shape(wmma_shapes, op, IS(TF32));
    case FRAGMENT_F64:
        return has_shape(wmma_shapes, op, IS(F64));
    case FRAGMENT_S32:
        return has_shape(wmma_shapes, op, IS(S8)) || has_shape(wmma_shapes, op, IS(S4)) ||
               has_shape(wmma_shapes, op, IS(B1));
    default:
        return false;
    }
}

static enum ptx_space space_of(const struct tokens *tokens)
{
    enum ptx_space space = PTX_NO_SPACE;
    for (unsigned i = 1; i < tokens->count; i++)
        token_space(tokens, i, &space);
    return space;
}

/* Parts of a byte are loaded only together. */
static bool take_memory(const struct tokens *tokens, struct matrix_op *op)
{
    enum fragment_element type[4];
    if (!take_shape(tokens, op) || matrix_elements(tokens, type) != 1)
        return false;
    op->d = matrix_fragment(type[0]);
    op->d.depth = op->k;
    op->use = token_is(tokens, 2, "a")   ? FRAGMENT_A
              : token_is(tokens, 2, "b") ? FRAGMENT_B
                                         : FRAGMENT_ACCUMULATOR;
    op->column_major = token_find(tokens, "col") >= 0;
    bool in_words = op->use == FRAGMENT_ACCUMULATOR || op->column_major == (op->use == FRAGMENT_B);
    return is_loadable(op) && (op->d.bits >= 8 || in_words);
}

static void emit_memory(struct builder *builder, const struct tokens *tokens, bool is_load)
{
    struct matrix_op op = {.stride = NO_OPERAND};
    struct insn where = {0};
    if (!take_memory(tokens, &op)) {
        decode_unsupported(builder);
        return;
    }
    unsigned count = register_count(&op, &op.d, op.use, true);
    take_registers(builder, operand_at(builder, is_load ? 0 : 1), count, is_load, &op.d);
    decode_address(builder, operand_at(builder, is_load ? 1 : 0), space_of(tokens), &where);
    if (operand_count(builder) > 2)
        op.stride = operand_source(builder, operand_at(builder, 2), PTX_U32);
    struct insn *insn =
        builder_emit(builder, is_load ? fragment_handlers()->load : fragment_handlers()->store);
    insn->a = where.a;
    insn->imm = where.imm;
    insn->space = where.space;
    insn->flags = where.flags;
    insn->matrix = keep_op(builder, &op);
}

/* wmma.load.{a b c}, wmma.store.d, wmma.mma */
void decode_wmma(struct builder *builder, const struct tokens *tokens)
{
    struct matrix_op op = {0};
    if (token_is(tokens, 1, "mma") && take_multiplication(tokens, wmma_shapes, true, &op))
        emit_multiply(builder, tokens, true, &op);
    else if (token_is(tokens, 1, "load") || token_is(tokens, 1, "store"))
        emit_memory(builder, tokens, token_is(tokens, 1, "load"));
    else
        decode_unsupported(builder);
}

/* ---- ldmatrix, stmatrix, movmatrix ---- */

/* ldmatrix.sync.aligned.m8n8.num{.trans}{.ss}.b16 r, [p], and stmatrix the other way round */
void decode_matrices(struct builder *builder, const struct tokens *tokens)
{
    bool is_load = token_is(tokens, 0, "ldmatrix");
    unsigned count = token_find(tokens, "x4") >= 0   ? 4
                     : token_find(tokens, "x2") >= 0 ? 2
                                                     : token_find(tokens, "x1") >= 0;
    struct matrix_op op = {.d = matrix_fragment(FRAGMENT_F16),
                           .column_major = token_find(tokens, "trans") >= 0};
    struct insn where = {0};
    if (count == 0 || token_find(tokens, "m8n8") < 0 || last_type(tokens) != PTX_B16) {
        decode_unsupported(builder);
        return;
    }
    take_registers(builder, operand_at(builder, is_load ? 0 : 1), count, is_load, &op.d);
    decode_address(builder, operand_at(builder, is_load ? 1 : 0), space_of(tokens), &where);
    struct insn *insn = builder_emit(builder, is_load ? fragment_handlers()->load_matrices
                                                      : fragment_handlers()->store_matrices);
    insn->a = where.a;
    insn->imm = where.imm;
    insn->space = where.space;
    insn->flags = where.flags;
    insn->matrix = keep_op(builder, &op);
}

/* movmatrix.sync.aligned.m8n8.trans.b16 d, a */
void decode_movmatrix(struct builder *builder, const struct tokens *tokens)
{
    if (token_find(tokens, "m8n8") < 0 || token_find(tokens, "trans") < 0 ||
        last_type(tokens) != PTX_B16) {
        decode_unsupported(builder);
        return;
    }
    uint32_t from = operand_source(builder, operand_at(builder, 1), PTX_B32);
    uint32_t to = operand_destination(builder, operand_at(builder, 0), PTX_B32);
    struct insn *insn = builder_emit(builder, fragment_handlers()->transpose_matrix);
    insn->a = from;
    insn->d = to;
}
