/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices between memory and the registers of a warp: wmma.load, wmma.store, ldmatrix, stmatrix,
 * movmatrix.
 */
#include <string.h>

#include "fragment.h"
#include "isa.h"
#include "translate.h"
#include "warp.h"

static uint64_t address_of(struct warp *warp, const struct insn *insn, unsigned lane)
{
    const uint64_t *wide = reg(warp, insn->a);
    const uint32_t *narrow = reg(warp, insn->a);
    return (insn->flags & INSN_WIDE_ADDRESS) ? wide[lane] + insn->imm
                                             : (uint32_t)(narrow[lane] + insn->imm);
}

/* ---- wmma.load and wmma.store ---- */

/* The matrix element that is the `part`-th in register `index` of a lane. */
static struct fragment_place element_place(const struct matrix_op *op, unsigned index,
                                           unsigned part, unsigned lane)
{
    unsigned parts = 8 * op->d.word / op->d.bits;
    unsigned words = fragment_words(&op->d);
    if (op->use == FRAGMENT_ACCUMULATOR)
        return place_c(op, index * parts + part, lane);
    struct fragment_place at = (op->use == FRAGMENT_A ? place_a : place_b)(op, words, index, lane);
    unsigned along_k = at.column * parts + part;
    return op->use == FRAGMENT_A ? (struct fragment_place){at.row, along_k}
                                 : (struct fragment_place){along_k, at.row};
}

/* Whether what a register holds lies together in memory too. */
static bool is_together(const struct matrix_op *op)
{
    return op->d.bits == 8 * op->d.word || op->column_major == (op->use == FRAGMENT_B);
}

/* The unit of an access: a register, or each of its elements. */
static unsigned access_size(const struct matrix_op *op)
{
    return is_together(op) ? op->d.word : op->d.bits / 8;
}

/* The common case of translate_lines: all is well with the first line and the last, and so with
 * those between them. False where that is not known. */
static bool find_lines(struct warp *warp, const struct insn *insn, uint64_t start, uint64_t step,
                       unsigned lines, unsigned size, unsigned align, unsigned access)
{
    uint64_t base;
    if (((start | step) & (align - 1)) ||
        !translate_span(warp, insn, start, start + (lines - 1) * step, size, access, &base))
        return false;
    for (unsigned line = 0; line < lines; line++)
        warp->address[line] = base + start + line * step;
    return true;
}

/*
 * Leaves in warp->address where each line of the matrix is in memory, a row or a column; false
 * behind a fault. All lanes give the same address and stride.
 */
static bool translate_lines(struct warp *warp, const struct insn *insn, const struct matrix_op *op,
                            unsigned access)
{
    unsigned rows = op->use == FRAGMENT_B ? op->k : op->m;
    unsigned columns = op->use == FRAGMENT_A ? op->k : op->n;
    unsigned lines = op->column_major ? columns : rows;
    unsigned length = op->column_major ? rows : columns;
    unsigned some = (unsigned)__builtin_ctz(warp->active);
    uint64_t start = address_of(warp, insn, some);
    uint64_t stride =
        op->stride == NO_OPERAND ? length : ((const uint32_t *)reg(warp, op->stride))[some];
    unsigned size = length * op->d.bits / 8, align = access_size(op);
    if (op->d.bits >= 8 &&
        find_lines(warp, insn, start, stride * (op->d.bits / 8), lines, size, align, access))
        return true;
    /* Counts of lines are powers of two. */
    for (unsigned lane = 0; lane < LANES; lane++)
        warp->address[lane] = start + (lane & (lines - 1)) * stride * op->d.bits / 8;
    return translate_given(warp, insn, size, align, access) != TRANSLATION_FAULT;
}

/* Where lane 0's part of a register is: line and byte. And where that of other lanes is from there:
 * in the next quad, and beside it in its own. */
struct walk {
    unsigned line, byte;
    unsigned quad_lines, quad_bytes;
    unsigned lane_lines, lane_bytes;
};

static struct walk walk_of(const struct matrix_op *op, unsigned index, unsigned part)
{
    struct fragment_place at = element_place(op, index, part, 0);
    unsigned beside = op->use == FRAGMENT_ACCUMULATOR ? 2 : 8 * op->d.word / op->d.bits;
    bool quads_are_lines = op->column_major == (op->use == FRAGMENT_B);
    unsigned bits = op->d.bits;
    return (struct walk){
        .line = op->column_major ? at.column : at.row,
        .byte = (op->column_major ? at.row : at.column) * bits / 8,
        .quad_lines = quads_are_lines ? 1 : 0,
        .quad_bytes = quads_are_lines ? 0 : bits / 8,
        .lane_lines = quads_are_lines ? 0 : beside,
        .lane_bytes = quads_are_lines ? beside * bits / 8 : 0,
    };
}

static inline void *element_of(const struct warp *warp, const struct walk *walk, unsigned lane)
{
    unsigned quad = lane / QUAD, beside = lane % QUAD;
    unsigned line = walk->line + quad * walk->quad_lines + beside * walk->lane_lines;
    unsigned byte = walk->byte + quad * walk->quad_bytes + beside * walk->lane_bytes;
    return (unsigned char *)(uintptr_t)warp->address[line] + byte;
}

/* Copies are of a size that the compiler knows. A line's address is looked up once for all that
 * lanes load from it: four lanes side by side, or one of each quad. */
#define COPY_PARTS(type)                                                                         \
    static void load_##type(struct warp *warp, const struct walk *walk, type *to, unsigned step) \
    {                                                                                            \
        unsigned lines = walk->quad_lines ? QUADS : QUAD;                                        \
        unsigned line_lanes = walk->quad_lines ? QUAD : 1;                                       \
        unsigned apart = walk->quad_lines ? walk->lane_bytes : walk->quad_bytes;                 \
        unsigned to_next = walk->quad_lines ? step : QUAD * step;                                \
        for (unsigned line = 0; line < lines; line++) {                                          \
            const unsigned char *from = element_of(warp, walk, line * line_lanes);               \
            type *into = to + line * line_lanes * step;                                          \
            for (unsigned i = 0; i < LANES / lines; i++)                                         \
                into[i * to_next] = *(const type *)(from + i * apart);                           \
        }                                                                                        \
    }                                                                                            \
    static void store_##type(struct warp *warp, const struct walk *walk, const type *from,       \
                             unsigned step)                                                      \
    {                                                                                            \
        EACH_ACTIVE_LANE                                                                         \
        *(type *)element_of(warp, walk, lane) = from[lane * step];                               \
    }
COPY_PARTS(uint8_t)
COPY_PARTS(uint16_t)
COPY_PARTS(uint32_t)
COPY_PARTS(uint64_t)
#undef COPY_PARTS

#define BY_SIZE(function, size, ...)      \
    if ((size) == 1)                      \
        function##_uint8_t(__VA_ARGS__);  \
    else if ((size) == 2)                 \
        function##_uint16_t(__VA_ARGS__); \
    else if ((size) == 4)                 \
        function##_uint32_t(__VA_ARGS__); \
    else                                  \
        function##_uint64_t(__VA_ARGS__)

static void load_register(struct warp *warp, const struct matrix_op *op, unsigned index)
{
    unsigned size = access_size(op), parts = op->d.word / size;
    unsigned char *to = reg(warp, op->d.registers[index]);
    for (unsigned part = 0; part < parts; part++) {
        struct walk walk = walk_of(op, index, part);
        BY_SIZE(load, size, warp, &walk, (void *)(to + part * size), parts);
    }
}

static void store_register(struct warp *warp, const struct matrix_op *op, unsigned index)
{
    unsigned size = access_size(op), parts = op->d.word / size;
    const unsigned char *from = reg(warp, op->d.registers[index]);
    for (unsigned part = 0; part < parts; part++) {
        struct walk walk = walk_of(op, index, part);
        BY_SIZE(store, size, warp, &walk, (const void *)(from + part * size), parts);
    }
}

static void run_fragment_load(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct matrix_op *op = matrix_op_of(warp, insn);
    if (!translate_lines(warp, insn, op, SG_READ))
        return;
    for (unsigned i = 0; i < op->d.count; i++)
        load_register(warp, op, i);
}

static void run_fragment_store(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct matrix_op *op = matrix_op_of(warp, insn);
    if (!translate_lines(warp, insn, op, SG_WRITE))
        return;
    for (unsigned i = 0; i < op->d.count; i++)
        store_register(warp, op, i);
}

/* ---- ldmatrix and stmatrix: rows of eight b16, each at the address that a lane gives ---- */

#define ROW_BYTES 16

/* Lanes beyond the rows give no address: they get that of a lane that does. */
static bool translate_rows(struct warp *warp, const struct insn *insn, unsigned rows,
                           unsigned access)
{
    for (unsigned lane = 0; lane < LANES; lane++)
        warp->address[lane] = address_of(warp, insn, lane % rows);
    return translate_given(warp, insn, ROW_BYTES, ROW_BYTES, access) != TRANSLATION_FAULT;
}

/* The halves of a lane: neighbors in a row, or, transposed, in a column. */
static uint16_t *half_at(struct warp *warp, bool transposed, unsigned matrix, unsigned lane,
                         unsigned half)
{
    unsigned row = lane / 4, column = 2 * (lane % 4) + half;
    uint64_t at = warp->address[8 * matrix + (transposed ? column : row)];
    return (uint16_t *)(uintptr_t)at + (transposed ? row : column);
}

static void run_load_matrices(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct matrix_op *op = matrix_op_of(warp, insn);
    if (!translate_rows(warp, insn, 8u * op->d.count, SG_READ))
        return;
    for (unsigned i = 0; i < op->d.count; i++) {
        uint32_t *to = reg(warp, op->d.registers[i]);
        for (unsigned lane = 0; lane < LANES; lane++)
            to[lane] = *half_at(warp, op->column_major, i, lane, 0) |
                       (uint32_t)*half_at(warp, op->column_major, i, lane, 1) << 16;
    }
}

static void run_store_matrices(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct matrix_op *op = matrix_op_of(warp, insn);
    if (!translate_rows(warp, insn, 8u * op->d.count, SG_WRITE))
        return;
    for (unsigned i = 0; i < op->d.count; i++) {
        const uint32_t *from = reg(warp, op->d.registers[i]);
        EACH_ACTIVE_LANE
        {
            *half_at(warp, op->column_major, i, lane, 0) = (uint16_t)from[lane];
            *half_at(warp, op->column_major, i, lane, 1) = (uint16_t)(from[lane] >> 16);
        }
    }
}

/* movmatrix: 8 by 8 of b16, between the lanes' registers. */
static void run_transpose_matrix(struct warp *warp, const struct insn *insn)
{
    uint32_t from[LANES];
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    memcpy(from, reg(warp, insn->a), sizeof(from));
    uint32_t *to = reg(warp, insn->d);
    for (unsigned lane = 0; lane < LANES; lane++) {
        unsigned row = lane / 4, column = 2 * (lane % 4);
        uint32_t low = from[4 * column + row / 2] >> 16 * (row % 2) & 0xffff;
        uint32_t high = from[4 * (column + 1) + row / 2] >> 16 * (row % 2) & 0xffff;
        to[lane] = low | high << 16;
    }
}

const struct fragment_handlers ISA_NAME(fragment_handlers) = {
    .load = run_fragment_load,
    .store = run_fragment_store,
    .load_matrices = run_load_matrices,
    .store_matrices = run_store_matrices,
    .transpose_matrix = run_transpose_matrix,
};
