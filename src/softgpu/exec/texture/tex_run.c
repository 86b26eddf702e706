/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs texture instructions: lanes with the same object are served together, each by itself.
 */
#include "tex_run.h"

#include <string.h>

#include "block_state.h"
#include "space.h"
#include "tex_lanes.h"
#include "warp_fault.h"

static uint32_t lane_bits(struct warp *warp, uint32_t offset, unsigned lane)
{
    return offset == NO_OPERAND ? 0 : ((const uint32_t *)reg(warp, offset))[lane];
}

static float lane_float(struct warp *warp, uint32_t offset, unsigned lane)
{
    uint32_t bits = lane_bits(warp, offset, lane);
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static bool is_layered(enum sg_shape shape)
{
    return shape == SG_1D_LAYERED || shape == SG_2D_LAYERED || shape == SG_CUBE_LAYERED;
}

static void read_floats(struct warp *warp, const struct insn *from, unsigned lane, float ret[3])
{
    ret[0] = lane_float(warp, from->d, lane);
    ret[1] = lane_float(warp, from->b, lane);
    ret[2] = lane_float(warp, from->c, lane);
}

static float level_of_detail(struct warp *warp, const struct insn *insn,
                             const struct sg_texture *texture, unsigned lane)
{
    float dx[3], dy[3];

    if (insn->mode == TEX_LEVEL)
        return lane_float(warp, insn[2].d, lane);
    if (insn->mode != TEX_GRADIENT)
        return 0;
    read_floats(warp, &insn[2], lane, dx);
    read_floats(warp, &insn[3], lane, dy);
    return sg_texture_lod(texture, insn->space, dx, dy);
}

/* Whether a fetch stays in the memory of a texture that is said to be longer. */
static bool is_in_memory(struct warp *warp, const struct insn *insn,
                         const struct sg_texture *texture, unsigned lane)
{
    if (texture->beyond == 0 || !(insn->flags & TEX_COUNTS_ELEMENTS))
        return true;
    uint32_t element = lane_bits(warp, insn[1].d, lane), width = texture->levels[0].width;
    if (element < width || element - width >= texture->beyond)
        return true;
    warp_fault(warp, insn, lane, CUDA_ERROR_ILLEGAL_ADDRESS,
               "element %u of a texture whose memory ends before", element);
    return false;
}

static void sample_lane(struct warp *warp, const struct insn *insn,
                        const struct sg_texture *texture, unsigned lane, uint32_t ret_bits[4])
{
    const struct insn *from = &insn[1];
    const uint32_t at[4] = {from->d, from->b, from->c, from->p};
    unsigned first = is_layered(insn->space) ? 1 : 0;
    struct sg_sample sample = {.shape = insn->space};
    int32_t elements[3] = {0};

    sample.layer = first ? lane_bits(warp, at[0], lane) : 0;
    sample.lod = level_of_detail(warp, insn, texture, lane);
    for (unsigned i = 0; i < 3 && first + i < 4; i++) {
        sample.at[i] = lane_float(warp, at[first + i], lane);
        elements[i] = (int32_t)lane_bits(warp, at[first + i], lane);
    }
    if (insn->mode == TEX_GATHER)
        sg_texture_gather(texture, &sample, insn->width, ret_bits);
    else if (insn->flags & TEX_COUNTS_ELEMENTS)
        sg_texture_fetch(texture, &sample, elements, ret_bits);
    else
        sg_texture_sample(texture, &sample, ret_bits);
}

/* Sources may be destinations as well, so nothing is written before all has been read. */
static void write_lane(struct warp *warp, const struct insn *insn, unsigned lane,
                       const uint32_t bits[4])
{
    const uint32_t to[4] = {insn->d, insn->b, insn->c, insn->p};

    for (unsigned i = 0; i < 4; i++) {
        if (to[i] != NO_OPERAND)
            ((uint32_t *)reg(warp, to[i]))[lane] = bits[i];
    }
}

bool tex_object(struct warp *warp, const struct insn *insn, unsigned lane, bool is_surface,
                struct sg_texture *ret_texture)
{
    uint64_t number = ((const uint64_t *)reg(warp, insn->a))[lane];
    struct sg_space *space = warp->block->grid->launch.space;

    if (!space_texture(space, number, ret_texture) || ret_texture->is_surface != is_surface) {
        warp_fault(warp, insn, lane, CUDA_ERROR_ILLEGAL_ADDRESS, "no %s has the number 0x%llx",
                   is_surface ? "surface" : "texture", (unsigned long long)number);
        return false;
    }
    if (!ret_texture->checked_size ||
        sg_space_allows(space, ret_texture->levels[0].address, ret_texture->checked_size, SG_READ))
        return true;
    warp_fault(warp, insn, lane, CUDA_ERROR_ILLEGAL_ADDRESS, "a texture's memory is gone");
    return false;
}

static void write_lanes(struct warp *warp, const struct insn *insn, uint32_t bits[4][LANES])
{
    const uint32_t to[4] = {insn->d, insn->b, insn->c, insn->p};

    for (unsigned i = 0; i < 4; i++) {
        uint32_t *lanes = to[i] == NO_OPERAND ? NULL : reg(warp, to[i]);
        if (lanes && warp->full) {
            memcpy(lanes, bits[i], sizeof(bits[i]));
            continue;
        }
        for (uint32_t rest = lanes ? warp->active : 0; rest; rest &= rest - 1) {
            unsigned lane = (unsigned)__builtin_ctz(rest);
            lanes[lane] = bits[i][lane];
        }
    }
}

/* All lanes together; false where that cannot be. */
static bool sample_lanes(struct warp *warp, const struct insn *insn,
                         const struct sg_texture *texture)
{
    static const float zeros[LANES];
    const struct insn *from = &insn[1];
    const uint32_t offsets[4] = {from->d, from->b, from->c, from->p};
    bool layered = is_layered(insn->space);
    uint32_t bits[4][LANES] __attribute__((aligned(64)));
    const float *at[3];

    if (insn->mode == TEX_GATHER || (insn->flags & TEX_COUNTS_ELEMENTS))
        return false;
    for (unsigned i = 0; i < 3; i++) {
        uint32_t offset = offsets[i + (layered ? 1 : 0)];
        at[i] = offset == NO_OPERAND ? zeros : reg(warp, offset);
    }
    if (layered && offsets[0] == NO_OPERAND)
        return false;
    const uint32_t *layer = layered ? reg(warp, offsets[0]) : NULL;
    if (!tex_sample_lanes()(texture, insn->space, layer, at, bits))
        return false;
    write_lanes(warp, insn, bits);
    return true;
}

static bool is_one_object(struct warp *warp, const struct insn *insn)
{
    const uint64_t *number = reg(warp, insn->a);
    uint64_t some = number[__builtin_ctz(warp->active)], apart = 0;

    for (unsigned lane = 0; lane < LANES; lane++)
        apart |= warp->active >> lane & 1 ? number[lane] ^ some : 0;
    return apart == 0;
}

static void run_tex_by_lanes(struct warp *warp, const struct insn *insn)
{
    struct sg_texture texture;
    uint64_t known = 0;
    bool any = false;

    EACH_ACTIVE_LANE
    {
        uint64_t number = ((const uint64_t *)reg(warp, insn->a))[lane];
        uint32_t bits[4];
        if ((!any || number != known) && !tex_object(warp, insn, lane, false, &texture))
            return;
        any = true;
        known = number;
        if (!is_in_memory(warp, insn, &texture, lane))
            return;
        sample_lane(warp, insn, &texture, lane, bits);
        write_lane(warp, insn, lane, bits);
    }
}

void run_tex(struct warp *warp, const struct insn *insn)
{
    struct sg_texture texture;
    unsigned some = (unsigned)__builtin_ctz(warp->active);

    if (is_one_object(warp, insn)) {
        if (!tex_object(warp, insn, some, false, &texture) || sample_lanes(warp, insn, &texture))
            return;
    }
    run_tex_by_lanes(warp, insn);
}

void run_tex_resident(struct warp *warp, const struct insn *insn)
{
    *pred(warp, insn->p) |= warp->active;
}
