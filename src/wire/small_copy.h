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

/* A kernel waits some microseconds for each read of host memory and has few reads in flight. On an
 * H100 one copy of this size takes a kernel 1 us longer than a copy engine. But each further one
 * costs the engine 5 us. */
#define SMALL_COPY_MAX 4096u /* bytes of one */
