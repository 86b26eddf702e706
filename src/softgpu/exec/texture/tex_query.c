/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers what kernels ask about objects.
 */
#include "tex_run.h"

static uint32_t query_answer(const struct sg_texture *texture, enum tex_query query, uint32_t at)
{
    const struct sg_level *level = &texture->levels[at < texture->level_count ? at : 0];

    switch (query) {
    case QUERY_WIDTH:
        return at < texture->level_count ? level->width + texture->beyond : 0;
    case QUERY_HEIGHT:
        return at < texture->level_count ? level->height : 0;
    case QUERY_DEPTH:
        return at < texture->level_count ? level->depth : 0;
    case QUERY_LAYERS:
        return texture->layers;
    case QUERY_LEVELS:
        return texture->level_count;
    case QUERY_SAMPLES:
        return 1;
    case QUERY_NORMALIZED:
        return texture->normalized;
    }
    return 0;
}

void run_tex_query(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        struct sg_texture texture;
        uint32_t level = insn->b == NO_OPERAND ? 0 : ((const uint32_t *)reg(warp, insn->b))[lane];
        if (!tex_object(warp, insn, lane, insn->flags, &texture))
            return;
        ((uint32_t *)reg(warp, insn->d))[lane] =
            query_answer(&texture, (enum tex_query)insn->mode, level);
    }
}
