/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata of a sparse A. Four bits, two indices, tell which half of a chunk of a row is
 * present. That is two of four elements, two pairs of eight where they have 4 bits, one of two
 * where they have 32. The lowest four bits of a row are about its first columns.
 *
 * PTX leaves open what indices mean that are equal or, with ordered metadata, descend. Here each of
 * them alone picks the row of B that an element meets.
 */
#include "fragment.h"

/* Lanes that are four apart tell of rows that are neighbors, and of those eight below. A register
 * is about eight chunks of one row where elements are of 8 bits or fewer, else about four of both.
 */
static unsigned chunk_metadata(struct warp *warp, const struct matrix_op *op, unsigned row,
                               unsigned chunk)
{
    const uint32_t *metadata = reg(warp, op->metadata);
    bool of_one_row = op->a.bits <= 8;
    unsigned teller = of_one_row ? chunk / 8 * 2 + row / 8 : chunk / 4;
    unsigned shift = of_one_row ? chunk % 8 * 4 : row / 8 * 16 + chunk % 4 * 4;
    return metadata[row % 8 * 4 + op->teller + teller] >> shift & 0xf;
}

/* The column of the chunk that its i-th element is of. */
static unsigned column_of(unsigned bits, unsigned metadata, unsigned i)
{
    if (bits == 32) /* indices are those of halves: 0 and 1, or 2 and 3 */
        return metadata >> 1 & 1;
    if (bits == 4)
        return 2 * (metadata >> i / 2 * 2 & 3) + i % 2;
    return metadata >> 2 * i & 3;
}

void matrix_sparse_rows(struct warp *warp, const struct matrix_op *op, uint8_t *ret_chosen)
{
    unsigned bits = op->a.bits, depth = op->a.depth;
    unsigned kept = bits == 32 ? 1 : bits == 4 ? 4 : 2; /* of a chunk twice as large */
    for (unsigned row = 0; row < op->m; row++) {
        for (unsigned i = 0; i < depth; i++) {
            unsigned chunk = i / kept;
            unsigned metadata = chunk_metadata(warp, op, row, chunk);
            ret_chosen[row * depth + i] =
                (uint8_t)(chunk * 2 * kept + column_of(bits, metadata, i % kept));
        }
    }
}
