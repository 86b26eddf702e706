/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices of f64 with AVX-512, straight from the lanes' registers. Four lanes hold a
 * row of four elements of A, or a column of four of B. Two of their registers hold the even and the
 * odd elements of a row of C. So a vector register holds two rows, and nothing has to be laid out
 * anew but the columns of B. Sums are the same as multiply_dense_f64's: fused, k ascending.
 */
#pragma once

#include <immintrin.h>

#include "fragment.h"

#define F64_DEPTH 4 /* of a block of 8 rows of A or 8 columns of B: one register */
#define F64_VECTORS (LANES / 8)

/* The rows of a block of B: of each its elements of even and odd columns, both twice. */
struct f64_rows {
    __m512d even[F64_DEPTH];
    __m512d odd[F64_DEPTH];
};

static inline struct f64_rows f64_rows_of(const double *b)
{
    const __m512i first_even = _mm512_set_epi64(9, 8, 1, 0, 9, 8, 1, 0);
    const __m512i next = _mm512_set1_epi64(2), odd = _mm512_set1_epi64(4);
    const __m512i last_even = _mm512_add_epi64(first_even, next);
    const __m512i first_odd = _mm512_add_epi64(first_even, odd);
    const __m512i last_odd = _mm512_add_epi64(last_even, odd);
    struct f64_rows rows;
    for (unsigned i = 0; i < 2; i++) {
        __m512d left = i == 0 ? _mm512_unpacklo_pd(_mm512_load_pd(b), _mm512_load_pd(b + 8))
                              : _mm512_unpackhi_pd(_mm512_load_pd(b), _mm512_load_pd(b + 8));
        __m512d right = i == 0 ? _mm512_unpacklo_pd(_mm512_load_pd(b + 16), _mm512_load_pd(b + 24))
                               : _mm512_unpackhi_pd(_mm512_load_pd(b + 16), _mm512_load_pd(b + 24));
        rows.even[i] = _mm512_permutex2var_pd(left, first_even, right);
        rows.even[i + 2] = _mm512_permutex2var_pd(left, last_even, right);
        rows.odd[i] = _mm512_permutex2var_pd(left, first_odd, right);
        rows.odd[i + 2] = _mm512_permutex2var_pd(left, last_odd, right);
    }
    return rows;
}

/* The sums of 8 rows and 8 columns. */
struct f64_sums {
    __m512d even[F64_VECTORS];
    __m512d odd[F64_VECTORS];
};

/* a: 32 lanes' elements of A. */
static inline void f64_add_products(const double *a, const struct f64_rows *rows,
                                    struct f64_sums *sums)
{
    for (unsigned i = 0; i < F64_VECTORS; i++) {
        __m512d x = _mm512_load_pd(a + 8 * i);
        __m512d of_k[F64_DEPTH] = {_mm512_permutex_pd(x, 0x00), _mm512_permutex_pd(x, 0x55),
                                   _mm512_permutex_pd(x, 0xaa), _mm512_permutex_pd(x, 0xff)};
        for (unsigned k = 0; k < F64_DEPTH; k++) {
            sums->even[i] = _mm512_fmadd_pd(of_k[k], rows->even[k], sums->even[i]);
            sums->odd[i] = _mm512_fmadd_pd(of_k[k], rows->odd[k], sums->odd[i]);
        }
    }
}

/* The registers of a block of 8 by 4 or 8 by 8, for m up to 16. They are place_a, place_b and
 * place_c of fragment.h, the other way round. */
static inline const double *f64_block_of_a(struct warp *warp, const struct matrix_op *op,
                                           unsigned row, unsigned k)
{
    return reg(warp, op->a.registers[row + k * (op->m / 8)]);
}

static inline const double *f64_block_of_b(struct warp *warp, const struct matrix_op *op,
                                           unsigned column, unsigned k)
{
    return reg(warp, op->b.registers[k + column * (op->k / F64_DEPTH)]);
}

static inline struct f64_sums f64_block(struct warp *warp, const struct matrix_op *op, unsigned row,
                                        unsigned column)
{
    unsigned first = 2 * (row + column * (op->m / 8));
    const double *even = reg(warp, op->c.registers[first]);
    const double *odd = reg(warp, op->c.registers[first + 1]);
    struct f64_sums sums;
    for (unsigned i = 0; i < F64_VECTORS; i++) {
        sums.even[i] = _mm512_load_pd(even + 8 * i);
        sums.odd[i] = _mm512_load_pd(odd + 8 * i);
    }
    for (unsigned k = 0; k < op->k / F64_DEPTH; k++) {
        struct f64_rows rows = f64_rows_of(f64_block_of_b(warp, op, column, k));
        f64_add_products(f64_block_of_a(warp, op, row, k), &rows, &sums);
    }
    return sums;
}

static inline void multiply_registers_f64(struct warp *warp, const struct matrix_op *op)
{
    /* D may be in registers of A and B: it is written when all sums are there. */
    struct f64_sums blocks[FRAGMENT_REGISTERS / 2];
    for (unsigned i = 0; i < op->d.count / 2u; i++)
        blocks[i] = f64_block(warp, op, i % (op->m / 8), i / (op->m / 8));
    for (unsigned i = 0; i < op->d.count / 2u; i++) {
        double *even = reg(warp, op->d.registers[2 * i]);
        double *odd = reg(warp, op->d.registers[2 * i + 1]);
        for (unsigned j = 0; j < F64_VECTORS; j++) {
            _mm512_store_pd(even + 8 * j, blocks[i].even[j]);
            _mm512_store_pd(odd + 8 * j, blocks[i].odd[j]);
        }
    }
}
