/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and reductions by tensor maps. They are done at once, as other bulk copies are (bulk.c),
 * and each active lane makes one of its own. What is outside of the tensor is filled in where it is
 * read, and left alone where it is written.
 */
#include "tensor_copy.h"

#include <string.h>

#include "atomics.h"
#include "cluster.h"
#include "mbarrier.h"
#include "sg_space.h"
#include "tensor_box.h"
#include "tensor_map.h"
#include "translate.h"
#include "warp.h"
#include "warp_fault.h"

#define CHUNK 16
#define SHARED_ALIGN 128
#define MAP_ALIGN 16
#define ROW_BYTES_MAX (256 * 8)
#define MULTICAST_MAX 16

/* One lane's copy. */
struct copy {
    struct warp *warp;
    const struct insn *insn;
    unsigned lane;
    struct cuda_tensor_map map;
    struct tensor_box box;
    unsigned char *shared[MULTICAST_MAX]; /* the box in each block that it goes to, or comes from */
    uint64_t *barriers[MULTICAST_MAX];
    unsigned block_count;
    enum ptx_type type; /* of a reduction */
};

static unsigned char *operand_address(struct copy *copy, unsigned which, unsigned size,
                                      unsigned align, unsigned access)
{
    if (!translate(copy->warp, copy->insn + which, size, align, access))
        return NULL;
    return (unsigned char *)(uintptr_t)copy->warp->address[copy->lane];
}

static void fault(struct copy *copy, CUresult result, const char *what)
{
    warp_fault(copy->warp, copy->insn, copy->lane, result, "%s", what);
}

/* ---- What is copied ---- */

static bool read_map(struct copy *copy)
{
    const unsigned char *bytes = operand_address(copy, 1, TENSOR_MAP_BYTES, MAP_ALIGN, SG_READ);
    const char *refusal;

    if (!bytes)
        return false;
    if (!tensor_map_unpack(bytes, &copy->map) || !cuda_tensor_map_is_valid(&copy->map)) {
        fault(copy, CUDA_ERROR_ILLEGAL_INSTRUCTION, "a copy by what is no valid tensor map");
        return false;
    }
    refusal = tensor_map_refusal(&copy->map);
    if (refusal) {
        warp_fault(copy->warp, copy->insn, copy->lane, CUDA_ERROR_NOT_SUPPORTED,
                   "copies by tensor maps do not do %s", refusal);
        return false;
    }
    return true;
}

static bool map_fits(struct copy *copy)
{
    bool wants_im2col = copy->insn->flags & TENSOR_COPY_IM2COL;

    if (copy->map.rank == copy->insn->width &&
        (copy->map.kind == TENSOR_MAP_IM2COL) == wants_im2col)
        return true;
    fault(copy, CUDA_ERROR_ILLEGAL_INSTRUCTION, "a tensor map of another rank or mode");
    return false;
}

static uint32_t slot(const struct copy *copy, unsigned index)
{
    const struct insn *four = copy->insn + 3 + index / 4;
    const uint32_t offsets[] = {four->d, four->b, four->c, four->p};
    uint32_t offset = offsets[index % 4];

    return offset == NO_OPERAND ? 0 : ((const uint32_t *)reg(copy->warp, offset))[copy->lane];
}

/* NULL, or what is wrong with the corners of an image, or with where its pixels begin. */
static const char *pixels_refusal(const struct copy *copy, const int32_t *coordinates)
{
    const struct cuda_tensor_map *map = &copy->map;

    for (unsigned i = 1; i + 1 < map->rank; i++) {
        int64_t last = (int64_t)map->dims[i] - 1 + map->upper[i - 1];

        if (copy->insn->mode != TENSOR_LOAD && (map->lower[i - 1] || map->upper[i - 1]))
            return "stores of pixels with corners";
        if (coordinates[i] < map->lower[i - 1] || coordinates[i] > last)
            return "pixels that do not begin between the corners";
    }
    return NULL;
}

/* Where a box may begin, as was found on an H200; anything else is an illegal instruction there,
 * and the ISA does not say so. */
static bool may_begin(struct copy *copy, const int32_t *coordinates)
{
    const struct cuda_tensor_map *map = &copy->map;
    int64_t inner = (int64_t)coordinates[0] * cuda_tensor_element_size(map->type);
    const char *refusal = NULL;

    if (inner % CHUNK)
        refusal = "a box that does not begin at a multiple of 16 bytes of the innermost dimension";
    else if (inner < 0 && copy->insn->mode != TENSOR_LOAD)
        refusal = "a store that begins in front of the innermost dimension";
    else if (map->kind == TENSOR_MAP_IM2COL)
        refusal = pixels_refusal(copy, coordinates);
    if (refusal)
        fault(copy, CUDA_ERROR_ILLEGAL_INSTRUCTION, refusal);
    return !refusal;
}

static bool begin_box(struct copy *copy)
{
    int32_t coordinates[CUDA_TENSOR_RANK_MAX];
    uint16_t offsets[CUDA_TENSOR_RANK_MAX - 2];

    for (unsigned i = 0; i < CUDA_TENSOR_RANK_MAX; i++)
        coordinates[i] = (int32_t)slot(copy, i);
    for (unsigned i = 0; i < CUDA_TENSOR_RANK_MAX - 2; i++)
        offsets[i] = (uint16_t)slot(copy, CUDA_TENSOR_RANK_MAX + i);
    if (!may_begin(copy, coordinates))
        return false;
    tensor_box_begin(&copy->box, &copy->map, coordinates, offsets);
    return true;
}

/* ---- Where it lies in shared memory ---- */

/* The operand's own block, or those that the mask names. */
static bool find_blocks(struct copy *copy)
{
    const struct block *block = copy->warp->block;
    uint32_t bytes = (uint32_t)tensor_box_bytes(&copy->box);
    uint32_t mask = copy->insn->c == NO_OPERAND
                        ? 0
                        : ((const uint32_t *)reg(copy->warp, copy->insn->c))[copy->lane] & 0xffff;

    copy->block_count = 1;
    if (copy->insn->c == NO_OPERAND)
        return true;
    copy->block_count = 0;
    for (unsigned char *own = copy->shared[0]; mask; mask &= mask - 1) {
        uint32_t rank = (uint32_t)__builtin_ctz(mask);
        unsigned i = copy->block_count++;
        copy->barriers[i] =
            (uint64_t *)(void *)cluster_counterpart(block, copy->barriers[0], rank, 8);
        copy->shared[i] = cluster_counterpart(block, own, rank, bytes);
        if (!copy->shared[i] || !copy->barriers[i]) {
            fault(copy, CUDA_ERROR_ILLEGAL_ADDRESS, "a block of a cluster that has fewer");
            return false;
        }
    }
    return true;
}

/* A box is larger than any shared memory if 32 bits do not hold its size. */
static bool find_shared(struct copy *copy)
{
    uint64_t bytes = tensor_box_bytes(&copy->box);
    unsigned access = copy->insn->mode == TENSOR_LOAD ? SG_WRITE : SG_READ;

    if (bytes > INT32_MAX) {
        fault(copy, CUDA_ERROR_ILLEGAL_ADDRESS, "a box that is larger than shared memory");
        return false;
    }
    copy->shared[0] = operand_address(copy, 0, (unsigned)bytes, SHARED_ALIGN, access);
    if (!copy->shared[0])
        return false;
    if (copy->insn->p == NO_OPERAND)
        return find_blocks(copy);
    copy->barriers[0] = (uint64_t *)(void *)operand_address(copy, 2, 8, 8, SG_READ | SG_WRITE);
    return copy->barriers[0] && find_blocks(copy);
}

static void swizzle_into(unsigned char *shared, uint32_t swizzle, const unsigned char *row,
                         uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += CHUNK)
        memcpy((void *)(uintptr_t)tensor_swizzled((uintptr_t)shared + at, swizzle), row + at,
               CHUNK);
}

static void swizzle_out(const unsigned char *shared, uint32_t swizzle, uint32_t bytes,
                        unsigned char *ret_row)
{
    for (uint32_t at = 0; at < bytes; at += CHUNK)
        memcpy(ret_row + at,
               (const void *)(uintptr_t)tensor_swizzled((uintptr_t)shared + at, swizzle), CHUNK);
}

/* ---- Rows ---- */

/* Where the row's elements are that are inside the tensor; NULL behind a fault. */
static unsigned char *global_row(struct copy *copy, const struct tensor_row *row, unsigned access)
{
    struct insn generic = {.space = PTX_NO_SPACE, .line = copy->insn->line};

    for (unsigned lane = 0; lane < LANES; lane++)
        copy->warp->address[lane] = row->address;
    if (!translate_given(copy->warp, &generic, row->count * copy->box.element, copy->box.element,
                         access))
        return NULL;
    return (unsigned char *)(uintptr_t)copy->warp->address[copy->lane];
}

/* Zeros, or NaNs: the one NaN of each type, least byte first. */
static void fill_row(const struct copy *copy, unsigned char *ret_row)
{
    uint32_t size = copy->box.element, bytes = tensor_box_row_bytes(&copy->box);

    memset(ret_row, copy->map.fill ? 0xff : 0, bytes);
    for (uint32_t at = size - 1; copy->map.fill && at < bytes; at += size)
        ret_row[at] = 0x7f;
}

static bool load_row(struct copy *copy, const struct tensor_row *row, uint32_t offset)
{
    unsigned char bytes[ROW_BYTES_MAX];
    const unsigned char *from;

    if (row->count < copy->box.row_elements)
        fill_row(copy, bytes);
    if (row->count) {
        from = global_row(copy, row, SG_READ);
        if (!from)
            return false;
        memcpy(bytes + row->first * copy->box.element, from, row->count * copy->box.element);
    }
    for (unsigned i = 0; i < copy->block_count; i++)
        swizzle_into(copy->shared[i] + offset, copy->map.swizzle, bytes,
                     tensor_box_row_bytes(&copy->box));
    return true;
}

static bool store_row(struct copy *copy, const struct tensor_row *row, uint32_t offset)
{
    bool reduces = copy->insn->mode >= TENSOR_REDUCE;
    uint32_t size = row->count * copy->box.element;
    unsigned char bytes[ROW_BYTES_MAX], *to;

    if (row->count == 0)
        return true;
    to = global_row(copy, row, reduces ? SG_READ | SG_WRITE : SG_WRITE);
    if (!to)
        return false;
    swizzle_out(copy->shared[0] + offset, copy->map.swizzle, tensor_box_row_bytes(&copy->box),
                bytes);
    if (reduces)
        atomic_reduce((enum atomic_op)(copy->insn->mode - TENSOR_REDUCE), copy->type, to,
                      bytes + row->first * copy->box.element, size);
    else
        memcpy(to, bytes + row->first * copy->box.element, size);
    return true;
}

/* ---- The instruction ---- */

static enum ptx_type reduced_type(uint32_t type, enum atomic_op op)
{
    static const enum ptx_type types[] = {
        [CU_TENSOR_MAP_DATA_TYPE_UINT32] = PTX_U32,  [CU_TENSOR_MAP_DATA_TYPE_INT32] = PTX_S32,
        [CU_TENSOR_MAP_DATA_TYPE_UINT64] = PTX_U64,  [CU_TENSOR_MAP_DATA_TYPE_INT64] = PTX_S64,
        [CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = PTX_F16, [CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = PTX_F32,
        [CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = PTX_F64, [CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = PTX_BF16,
    };
    enum ptx_type found = type < sizeof(types) / sizeof(types[0]) ? types[type] : PTX_NO_TYPE;

    if (op < ATOMIC_AND)
        return found;
    return found == PTX_U32 || found == PTX_S32   ? PTX_B32
           : found == PTX_U64 || found == PTX_S64 ? PTX_B64
                                                  : PTX_NO_TYPE;
}

static bool reduction_exists(struct copy *copy)
{
    enum atomic_op op = (enum atomic_op)(copy->insn->mode - TENSOR_REDUCE);

    if (copy->insn->mode < TENSOR_REDUCE)
        return true;
    copy->type = reduced_type(copy->map.type, op);
    if (copy->type != PTX_NO_TYPE && atomic_handler(op, copy->type))
        return true;
    fault(copy, CUDA_ERROR_ILLEGAL_INSTRUCTION, "a reduction that the map's type does not have");
    return false;
}

static bool move_rows(struct copy *copy)
{
    uint32_t offset = 0;

    for (uint64_t i = 0; i < copy->box.row_count; i++) {
        struct tensor_row row;

        tensor_box_next(&copy->box, &row);
        if (!(copy->insn->mode == TENSOR_LOAD ? load_row(copy, &row, offset)
                                              : store_row(copy, &row, offset)))
            return false;
        offset += tensor_box_row_bytes(&copy->box);
    }
    return true;
}

static void run_lane(struct warp *warp, const struct insn *insn, unsigned lane)
{
    struct copy copy = {.warp = warp, .insn = insn, .lane = lane};

    if (!read_map(&copy) || !map_fits(&copy) || !reduction_exists(&copy))
        return;
    if (!begin_box(&copy) || !find_shared(&copy) || !move_rows(&copy))
        return;
    for (unsigned i = 0; i < copy.block_count && copy.barriers[i]; i++)
        mbarrier_complete(copy.barriers[i], (uint32_t)tensor_box_bytes(&copy.box));
}

void run_tensor_copy(struct warp *warp, const struct insn *insn)
{
    uint32_t active = warp->active;

    for (uint32_t rest = active; rest && warp->event != WARP_FAULT; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);

        warp_set_active(warp, 1u << lane);
        run_lane(warp, insn, lane);
    }
    warp_set_active(warp, active);
}
