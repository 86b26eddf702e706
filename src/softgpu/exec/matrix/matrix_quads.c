/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mma.m8n8k4 of f16, as sm_70 has it: four products at once, each of 8 by 8. Eight lanes make one:
 * four neighbors of the warp's lower half, and those sixteen above. They are its members 0 to 7.
 */
#include "matrix_math.h"
#include "warp.h"

#define MEMBERS 8
#define SIDE 8
#define DEPTH 4

static unsigned lane_of(unsigned quad, unsigned member)
{
    return 4 * quad + member % 4 + member / 4 * (LANES / 2);
}

/* Of A row and k, of B column and k, of a member's i-th element. */
static struct fragment_place place_factor(bool across, unsigned member, unsigned i)
{
    return across ? (struct fragment_place){.row = i + member / 4 * 4, .column = member % 4}
                  : (struct fragment_place){.row = member, .column = i};
}

static struct fragment_place place_f32(unsigned member, unsigned i)
{
    return (struct fragment_place){.row = (member & 1) + (i & 2) + member / 4 * 4,
                                   .column = (i & 4) + (member & 2) + (i & 1)};
}

/* The i-th element of a lane, where registers hold two of 16 bits. */
static uint16_t *half_of(struct warp *warp, const struct fragment *fragment, unsigned lane,
                         unsigned i)
{
    uint16_t *halves = reg(warp, fragment->registers[i / 2]);
    return &halves[2 * lane + i % 2];
}

static void gather_factor(struct warp *warp, const struct fragment *fragment, unsigned quad,
                          float ret_matrix[SIDE][DEPTH])
{
    for (unsigned member = 0; member < MEMBERS; member++) {
        for (unsigned i = 0; i < DEPTH; i++) {
            struct fragment_place at = place_factor(fragment->across, member, i);
            ret_matrix[at.row][at.column] =
                from_half(*half_of(warp, fragment, lane_of(quad, member), i));
        }
    }
}

static void gather_c(struct warp *warp, const struct fragment *c, unsigned quad,
                     float ret_matrix[SIDE][SIDE])
{
    for (unsigned member = 0; member < MEMBERS; member++) {
        unsigned lane = lane_of(quad, member);
        for (unsigned i = 0; i < SIDE; i++) {
            if (c->element == FRAGMENT_F16) {
                ret_matrix[member][i] = from_half(*half_of(warp, c, lane, i));
                continue;
            }
            struct fragment_place at = place_f32(member, i);
            ret_matrix[at.row][at.column] =
                bits_float(((uint32_t *)reg(warp, c->registers[i]))[lane]);
        }
    }
}

static void scatter_d(struct warp *warp, const struct fragment *d, unsigned quad,
                      float matrix[SIDE][SIDE])
{
    for (unsigned member = 0; member < MEMBERS; member++) {
        unsigned lane = lane_of(quad, member);
        for (unsigned i = 0; i < SIDE; i++) {
            if (d->element == FRAGMENT_F16) {
                *half_of(warp, d, lane, i) = to_half(matrix[member][i]);
                continue;
            }
            struct fragment_place at = place_f32(member, i);
            ((uint32_t *)reg(warp, d->registers[i]))[lane] =
                float_bits(quiet(matrix[at.row][at.column]));
        }
    }
}

/* D may be in registers of A, B or C of the same lanes only, so one quad after the other will do.
 */
void run_multiply_quads(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct matrix_op *op = matrix_op_of(warp, insn);
    for (unsigned quad = 0; quad < LANES / MEMBERS; quad++) {
        float a[SIDE][DEPTH], columns[SIDE][DEPTH], b[DEPTH][SIDE], c[SIDE][SIDE];
        gather_factor(warp, &op->a, quad, a);
        gather_factor(warp, &op->b, quad, columns);
        for (unsigned at = 0; at < DEPTH * SIDE; at++)
            b[at / SIDE][at % SIDE] = columns[at % SIDE][at / SIDE];
        gather_c(warp, &op->c, quad, c);
        multiply_dense_f32(op, a[0], b[0], c[0]);
        scatter_d(warp, &op->d, quad, c);
    }
}
