/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes of tensor maps. A tiled box has box[i] / element_strides[i] elements along a dimension,
 * rounded up; the innermost has no stride. An im2col box is a sequence of pixels, which are
 * positions of a filter. W, then H, then D go from the lower corner to the upper one, in steps of
 * the element strides; then follows the next image.
 */
#include "tensor_box.h"

#include <string.h>

static void begin_tiled(struct tensor_box *box)
{
    const struct cuda_tensor_map *map = box->map;

    box->row_elements = map->box[0];
    box->row_count = 1;
    for (uint32_t i = 1; i < map->rank; i++) {
        uint32_t step = map->element_strides[i];

        box->counts[i] = (map->box[i] + step - 1) / step;
        box->row_count *= box->counts[i];
    }
}

void tensor_box_begin(struct tensor_box *box, const struct cuda_tensor_map *map,
                      const int32_t *coordinates, const uint16_t *offsets)
{
    *box = (struct tensor_box){.map = map, .element = cuda_tensor_element_size(map->type)};
    for (uint32_t i = 0; i < map->rank; i++)
        box->start[i] = box->at[i] = coordinates[i];
    for (uint32_t i = 0; offsets && i + 2 < map->rank; i++)
        box->offsets[i] = offsets[i];
    if (map->kind == TENSOR_MAP_TILED) {
        begin_tiled(box);
        return;
    }
    box->row_elements = map->channels;
    box->row_count = map->pixels;
}

static void step_tiled(struct tensor_box *box)
{
    for (uint32_t i = 1; i < box->map->rank; i++) {
        box->at[i] += box->map->element_strides[i];
        if (++box->passed[i] < box->counts[i])
            return;
        box->at[i] = box->start[i];
        box->passed[i] = 0;
    }
}

static void step_pixel(struct tensor_box *box)
{
    const struct cuda_tensor_map *map = box->map;
    uint32_t images = map->rank - 1;

    for (uint32_t i = 1; i < images; i++) {
        box->at[i] += map->element_strides[i];
        if (box->at[i] <= (int64_t)map->dims[i] - 1 + map->upper[i - 1])
            return;
        box->at[i] = map->lower[i - 1];
    }
    box->at[images]++;
}

/* Where the row's element 0 would be, if the row is inside along all dimensions but the innermost.
 */
static bool find_row(const struct tensor_box *box, uint64_t *ret_address)
{
    const struct cuda_tensor_map *map = box->map;
    uint64_t address = map->address;

    for (uint32_t i = 1; i < map->rank; i++) {
        int64_t at = box->at[i];

        if (map->kind == TENSOR_MAP_IM2COL && i + 1 < map->rank)
            at += box->offsets[i - 1];
        if (at < 0 || (uint64_t)at >= map->dims[i])
            return false;
        address += (uint64_t)at * map->strides[i - 1];
    }
    *ret_address = address;
    return true;
}

/* The part of the row that is inside along the innermost dimension. */
static void cut_row(const struct tensor_box *box, uint64_t address, struct tensor_row *ret_row)
{
    int64_t start = box->start[0], end = start + box->row_elements;
    int64_t limit = (int64_t)box->map->dims[0];
    int64_t low = start < 0 ? 0 : start, high = end > limit ? limit : end;

    if (low >= high)
        return;
    ret_row->address = address + (uint64_t)low * box->element;
    ret_row->first = (uint32_t)(low - start);
    ret_row->count = (uint32_t)(high - low);
}

void tensor_box_next(struct tensor_box *box, struct tensor_row *ret_row)
{
    uint64_t address;

    *ret_row = (struct tensor_row){0};
    if (find_row(box, &address))
        cut_row(box, address, ret_row);
    if (box->map->kind == TENSOR_MAP_TILED)
        step_tiled(box);
    else
        step_pixel(box);
}
