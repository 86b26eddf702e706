/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The video instructions on packed bytes and halfwords, see video.c.
 */
#pragma once

#include "warp_state.h"

/* insn.mode */
enum video_op {
    VIDEO_ADD,
    VIDEO_SUB,
    VIDEO_AVERAGE,
    VIDEO_DIFFERENCE,
    VIDEO_MIN,
    VIDEO_MAX,
    VIDEO_EQ,
    VIDEO_NE,
    VIDEO_LT,
    VIDEO_LE,
    VIDEO_GT,
    VIDEO_GE,
};

/* insn.flags; insn.width is how many elements there are. */
enum {
    VIDEO_SIGNED_D = 1,
    VIDEO_SIGNED_A = 2,
    VIDEO_SIGNED_B = 4,
    VIDEO_SATURATES = 8,
    VIDEO_SUMS = 16, /* adds all results to c */
};

void run_video(struct warp *warp, const struct insn *insn);
