/* SPDX-License-Identifier: Apache-2.0 */
/* See wgmma_memory.h. */
#include "wgmma_memory.h"

#include <string.h>

#include "warp.h"
#include "warp_fault.h"
#define CHUNK 16
#define CHUNK_ROWS 8 /* of 16 bits */
#define ROW_CHUNKS 2
#define DEPTH 16 /* elements of 16 bits along k */

struct descriptor {
    uint32_t start;   /* bytes, as all of these */
    uint32_t leading; /* as NVIDIA names it: between chunks along k, or of M and N */
    uint32_t stride;  /* between groups of eight rows, or along k */
    uint32_t span;    /* within which chunks are exchanged: 16 is no swizzle */
    uint32_t base;    /* an offset of the pattern */
};

static struct descriptor unpack_descriptor(uint64_t bits)
{
    static const uint8_t spans[] = {16, 128, 64, 32};

    return (struct descriptor){
        .start = (uint32_t)(bits & 0x3fff) << 4,
        .leading = (uint32_t)(bits >> 16 & 0x3fff) << 4,
        .stride = (uint32_t)(bits >> 32 & 0x3fff) << 4,
        .span = spans[bits >> 62],
        .base = (uint32_t)(bits >> 49 & 7),
    };
}

/* Chunks lie in lines of 128 bytes; what a line's number has in these bits tells where. */
static uint32_t swizzle(const struct descriptor *from, uint32_t address)
{
    return address ^ (address >> 7 & (from->span / CHUNK - 1)) << 4;
}

static uint32_t chunk_along(const struct descriptor *from, unsigned row, unsigned chunk)
{
    uint32_t pitch = from->span;
    uint32_t step = from->span == CHUNK ? from->leading : CHUNK;

    return row / 8 * from->stride + row % 8 * pitch + chunk * step;
}

/* Of eight rows the element k. Without a swizzle the two distances change places. */
static uint32_t chunk_across(const struct descriptor *from, unsigned row, unsigned k)
{
    uint32_t chunk = row / CHUNK_ROWS, wide = from->span / CHUNK;

    if (wide == 1)
        return chunk * from->stride + k % 8 * CHUNK + k / 8 * from->leading;
    return chunk % wide * CHUNK + chunk / wide * from->leading + k % 8 * from->span +
           k / 8 * from->stride;
}

static bool read_chunk(struct warp *warp, const struct insn *insn, const struct descriptor *from,
                       uint32_t offset, void *ret_chunk)
{
    const struct block *block = warp->block;
    uint32_t at = swizzle(from, from->start + offset);

    if (at > block->shared_size || block->shared_size - at < CHUNK) {
        warp_fault(warp, insn, (unsigned)__builtin_ctz(warp->active), CUDA_ERROR_ILLEGAL_ADDRESS,
                   "a matrix at 0x%x, beyond the %u bytes of shared memory", at,
                   block->shared_size);
        return false;
    }
    memcpy(ret_chunk, block->shared + at, CHUNK);
    return true;
}

static bool read_along(struct warp *warp, const struct insn *insn, const struct descriptor *from,
                       unsigned first, unsigned count, uint32_t *rows)
{
    for (unsigned i = 0; i < count * ROW_CHUNKS; i++) {
        uint32_t offset = chunk_along(from, first + i / ROW_CHUNKS, i % ROW_CHUNKS);

        if (!read_chunk(warp, insn, from, offset, rows + i * (CHUNK / sizeof(*rows))))
            return false;
    }
    return true;
}

static bool read_across(struct warp *warp, const struct insn *insn, const struct descriptor *from,
                        unsigned first, unsigned count, uint16_t *rows)
{
    uint16_t chunk[CHUNK_ROWS];

    for (unsigned row = 0; row < count; row += CHUNK_ROWS) {
        for (unsigned k = 0; k < DEPTH; k++) {
            if (!read_chunk(warp, insn, from, chunk_across(from, first + row, k), chunk))
                return false;
            for (unsigned i = 0; i < CHUNK_ROWS; i++)
                rows[(row + i) * DEPTH + k] = chunk[i];
        }
    }
    return true;
}

bool wgmma_rows(struct warp *warp, const struct insn *insn, const struct wgmma_operand *operand,
                unsigned first, unsigned count, uint32_t *ret_rows)
{
    unsigned lane = (unsigned)__builtin_ctz(warp->active);
    struct descriptor from =
        unpack_descriptor(((const uint64_t *)reg(warp, operand->descriptor))[lane]);

    if (from.base) {
        warp_fault(warp, insn, lane, CUDA_ERROR_NOT_SUPPORTED,
                   "a matrix descriptor with base offset %u", from.base);
        return false;
    }
    if (operand->across)
        return read_across(warp, insn, &from, first, count, (uint16_t *)(void *)ret_rows);
    return read_along(warp, insn, &from, first, count, ret_rows);
}

/* ---- Groups ---- */

void run_wgmma_commit(struct warp *warp, const struct insn *insn)
{
    if (warp_converged(warp, insn, FULL_MASK))
        warp->wgmma_groups++;
}

/* Whether another warp of the group still has to read what this one waits for. */
static bool others_are_behind(const struct warp *warp, uint64_t may_lack)
{
    const struct block *block = warp->block;
    uint32_t first = warp->index / WGMMA_WARPS * WGMMA_WARPS;

    for (uint32_t i = first; i < first + WGMMA_WARPS && i < block->warp_count; i++) {
        const struct warp *other = &block->warps[i];

        if (other->alive && other->wgmma_groups + may_lack < warp->wgmma_groups)
            return true;
    }
    return false;
}

/* Shared memory may be written again once all four warps have read it: earlier warps wait. */
void run_wgmma_wait(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK) || !others_are_behind(warp, insn->imm))
        return;
    warp->budget = 1;
    warp_branch(warp, insn, warp->active);
}
