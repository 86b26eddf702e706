/* SPDX-License-Identifier: Apache-2.0 */
/* Copies on streams that capture. */
#pragma once

#include "client_copy.h"

/* True when a copy is over with the result, be it captured or refused. Asked only of a stream that
 * is not plain; takes client_graph_lock. */
bool capture_takes_copy(struct stream *stream, const struct box *box, enum side dst, enum side src,
                        bool sync, CUresult *ret_result);
