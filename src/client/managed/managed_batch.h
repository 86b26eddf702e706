/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of managed memory on their way to the server. Small ones may travel together, and the
 * server makes them with one kernel. That kernel needs capacity on the device. A running kernel may
 * leave none, and may itself wait for the program, which waits for the copy. So copies travel
 * together only where no kernel of the program runs beside them. Kernels of other programs delay
 * them no longer than they delay its kernels.
 *
 * All with the channel lock.
 */
#pragma once

#include "client_stream.h"
#include "small_copy.h"

struct managed_batch {
    struct stream *stream; /* of all copies */
    bool together;         /* no kernel of the program runs beside them */
    unsigned count;        /* of copies that have not been sent */
    struct small_copy copies[SMALL_COPIES_MAX];
};

/* Adds a copy, of any size. The stream may reach it before or after the others. */
void managed_batch_add_locked(struct managed_batch *batch, uint64_t dst, uint64_t src,
                              uint64_t size);

/* Sends the copies that have not been sent. Other work may come behind. */
void managed_batch_send_locked(struct managed_batch *batch);
