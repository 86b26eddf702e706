/* SPDX-License-Identifier: Apache-2.0 */
/* One of the copies that travel together in fnCopyBatch. */
#pragma once

#include <stdint.h>

struct small_copy {
    uint64_t dst;  /* address of the first byte to write */
    uint64_t src;  /* address of the first byte to read */
    uint64_t size; /* bytes, from 1 to SMALL_COPY_MAX */
};

#define SMALL_COPIES_MAX 64u /* in one command */

/* A kernel waits some microseconds for each read of host memory and has few reads in flight at a
 * time: one copy of this size takes it 1 us longer than a copy engine (H100), but each further one
 * costs an engine 5 us. */
#define SMALL_COPY_MAX 4096u /* bytes of one */
