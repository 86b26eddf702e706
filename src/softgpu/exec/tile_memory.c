/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices between memory and the registers of a warp: wmma.load, wmma.store, ldmatrix, stmatrix,
 * movmatrix.
 */
#include <string.h>

#include "exec_control.h"
#include "tile.h"

static uint64_t address_of(struct warp *warp, const struct insn *insn, unsigned lane)
{
    const uint64_t *wide = reg(warp, insn->a);
    const uint32_t *narrow = reg(warp, insn->a);
    return (insn->flags & INSN_WIDE_ADDRESS) ? wide[lane] + insn->imm
                                             : (uint32_t)(narrow[lane] + insn->imm);
}

/* ---- wmma.load and wmma.store ---- */

/* Which element of the matrix the `part`-th in register `index` of a lane is. */
static struct tile_place element_place(const struct tile_op *op, unsigned index, unsigned part,
                                       unsigned lane)
{
    unsigned parts = 8 * op->d.word / op->d.bits;
    unsigned words = tile_words(&op->d);
    if (op->use == TILE_ACCUMULATOR)
        return place_c(op, index * parts + part, lane);
    struct tile_place at = (op->use == TILE_A ? place_a : place_b)(op, words, index, lane);
    unsigned along_k = at.column * parts + part;
    return op->use == TILE_A ? (struct tile_place){at.row, along_k}
                             : (struct tile_place){along_k, at.row};
}

/* How many elements a row has, or a column where columns lie behind each other. */
static unsigned default_stride(const struct tile_op *op)
{
    unsigned rows = op->use == TILE_B ? op->k : op->m;
    unsigned columns = op->use == TILE_A ? op->k : op->n;
    return op->column_major ? rows : columns;
}

/* Whether what a register holds lies together in memory too. */
static bool is_together(const struct tile_op *op)
{
    return op->d.bits == 8 * op->d.word || op->column_major == (op->use == TILE_B);
}

/* Leaves in warp->address where a part of a register is in memory; false behind a fault. */
static bool locate_part(struct warp *warp, const struct insn *insn, const struct tile_op *op,
                        unsigned index, unsigned part, unsigned size, unsigned access)
{
    const uint32_t *stride = op->stride == NO_OPERAND ? NULL : reg(warp, op->stride);
    for (unsigned lane = 0; lane < LANES; lane++) {
        struct tile_place at = element_place(op, index, part, lane);
        uint64_t major = op->column_major ? at.column : at.row;
        uint64_t minor = op->column_major ? at.row : at.column;
        uint64_t element = major * (stride ? stride[lane] : default_stride(op)) + minor;
        warp->address[lane] = address_of(warp, insn, lane) + element * op->d.bits / 8;
    }
    return locate_given(warp, insn, size, size, access) != LOCATE_FAULT;
}

static void load_register(struct warp *warp, const struct insn *insn, const struct tile_op *op,
                          unsigned index)
{
    bool together = is_together(op);
    unsigned size = together ? op->d.word : op->d.bits / 8;
    unsigned char *to = reg(warp, op->d.registers[index]);
    for (unsigned part = 0; part < op->d.word / size; part++) {
        if (!locate_part(warp, insn, op, index, part, size, SG_READ))
            return;
        for (unsigned lane = 0; lane < LANES; lane++)
            memcpy(to + lane * op->d.word + part * size, (void *)(uintptr_t)warp->address[lane],
                   size);
    }
}

static void store_register(struct warp *warp, const struct insn *insn, const struct tile_op *op,
                           unsigned index)
{
    bool together = is_together(op);
    unsigned size = together ? op->d.word : op->d.bits / 8;
    const unsigned char *from = reg(warp, op->d.registers[index]);
    for (unsigned part = 0; part < op->d.word / size; part++) {
        if (!locate_part(warp, insn, op, index, part, size, SG_WRITE))
            return;
        EACH_ACTIVE_LANE
        memcpy((void *)(uintptr_t)warp->address[lane], from + lane * op->d.word + part * size,
               size);
    }
}

void run_tile_load(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct tile_op *op = tile_op_of(warp, insn);
    for (unsigned i = 0; i < op->d.count && warp->event != WARP_FAULT; i++)
        load_register(warp, insn, op, i);
}

void run_tile_store(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct tile_op *op = tile_op_of(warp, insn);
    for (unsigned i = 0; i < op->d.count && warp->event != WARP_FAULT; i++)
        store_register(warp, insn, op, i);
}

/* ---- ldmatrix and stmatrix: rows of eight b16, each at the address that a lane gives ---- */

#define ROW_BYTES 16

/* Lanes beyond the rows give no address: they get that of a lane that does. */
static bool locate_rows(struct warp *warp, const struct insn *insn, unsigned rows, unsigned access)
{
    for (unsigned lane = 0; lane < LANES; lane++)
        warp->address[lane] = address_of(warp, insn, lane % rows);
    return locate_given(warp, insn, ROW_BYTES, ROW_BYTES, access) != LOCATE_FAULT;
}

/* The halves of a lane: neighbours in a row, or, transposed, in a column. */
static uint16_t *half_at(struct warp *warp, bool transposed, unsigned matrix, unsigned lane,
                         unsigned half)
{
    unsigned row = lane / 4, column = 2 * (lane % 4) + half;
    uint64_t at = warp->address[8 * matrix + (transposed ? column : row)];
    return (uint16_t *)(uintptr_t)at + (transposed ? row : column);
}

void run_load_matrices(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct tile_op *op = tile_op_of(warp, insn);
    if (!locate_rows(warp, insn, 8u * op->d.count, SG_READ))
        return;
    for (unsigned i = 0; i < op->d.count; i++) {
        uint32_t *to = reg(warp, op->d.registers[i]);
        for (unsigned lane = 0; lane < LANES; lane++)
            to[lane] = *half_at(warp, op->column_major, i, lane, 0) |
                       (uint32_t)*half_at(warp, op->column_major, i, lane, 1) << 16;
    }
}

void run_store_matrices(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct tile_op *op = tile_op_of(warp, insn);
    if (!locate_rows(warp, insn, 8u * op->d.count, SG_WRITE))
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
void run_transpose_matrix(struct warp *warp, const struct insn *insn)
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
