/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client's streams have to do at one moment, for accounting. From any thread; nothing is
 * recorded for it where work is put into streams, but for the grid of the last kernel.
 */
#pragma once

#include "session.h"

struct streams_sample {
    bool has_kernels[SERVER_MAX_DEVICES]; /* some stream's last work is a kernel, and not done */
    bool has_other[SERVER_MAX_DEVICES];   /* the same for copies and memsets */
    uint64_t blocks[SERVER_MAX_DEVICES];  /* of those kernels together */
    bool is_uncertain; /* a stream that counts as busy has no fence behind its last work */
};

/* Looks at all streams: false, and nothing is known, while the list of them changes. With `ask` the
 * driver is asked about streams that have no fence behind their last work. */
bool streams_sample(const struct session *session, bool ask, struct streams_sample *ret_sample);
