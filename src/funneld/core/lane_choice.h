/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which programs have another class, or another lane, than they had when they came. An operator has
 * ordered that, or their kernels are long (lane_watch.h). A program is known by the token of its
 * hello, so that it comes back where it was when its server has ended. The one that has been asked
 * for least lately is forgotten when there are too many, and is then as it was when it came.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hello.h"

#define LANE_CHOICES 256u

enum lane_wish {
    LANE_OF_CLASS = 0, /* that of its class */
    LANE_BATCH = 1,    /* the batch lane, whatever its class */
    LANE_SPARE = 2,    /* the spare lane, while the program moves there */
    LANE_JOINED = 3,   /* the batch lane, to open memory of a program there: lane_join.h */
};

static inline bool lane_wish_is_batch(enum lane_wish wish)
{
    return wish == LANE_BATCH || wish == LANE_JOINED;
}

struct lane_choice {
    uint8_t token[HELLO_TOKEN_SIZE]; /* all zero = none */
    uint32_t class;                  /* enum client_class; CLASS_UNSET = the one that it asks for */
    uint32_t wish;                   /* enum lane_wish */
    uint64_t used;                   /* lane_choices.clock */
};

struct lane_choices {
    struct lane_choice choice[LANE_CHOICES];
    uint64_t clock; /* counts */
};

/* The choice for the program of this token: all zero when there is none. */
struct lane_choice lane_choice_find(struct lane_choices *choices,
                                    const uint8_t token[HELLO_TOKEN_SIZE]);

/* Makes it, or with CLASS_UNSET and LANE_OF_CLASS takes it back. A program without a token cannot
 * have one: false. */
bool lane_choice_set(struct lane_choices *choices, const uint8_t token[HELLO_TOKEN_SIZE],
                     uint32_t class, enum lane_wish wish);
