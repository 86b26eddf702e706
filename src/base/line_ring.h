/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest lines of a log, in memory. Lines are numbered from 0 as they come. A number stays
 * valid as a place to read from when its line is no longer there.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_RING_LINES 100u
#define LINE_RING_LENGTH 256u /* of a line, with its newline and a NUL; longer ones are cut */

struct line_ring {
    pthread_mutex_t lock;
    char lines[LINE_RING_LINES][LINE_RING_LENGTH];
    uint32_t count; /* that have ever come */
};

#define LINE_RING_INIT                    \
    {                                     \
        .lock = PTHREAD_MUTEX_INITIALIZER \
    }

/* From any thread: adds a line, which has no newline. */
void line_ring_add(struct line_ring *ring, const char *line);

/* The number that the next line will have. */
uint32_t line_ring_next(struct line_ring *ring);

/* Copies the lines from number `from` on, each with a newline, and a NUL behind them. Where they
 * do not fit into `capacity` bytes, the oldest are left out. Returns the bytes before the NUL, and
 * the number that the next line will have. */
size_t line_ring_copy(struct line_ring *ring, uint32_t from, char *ret_text, size_t capacity,
                      uint32_t *ret_next);
