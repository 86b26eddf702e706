/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that copy boxes of arrays. */
#pragma once

#include "client_copy.h"

/* Puts a copy from or to an array on a stream. No side is pageable. */
CUresult copy_array(const struct box *box, struct stream *stream);

/* Sends that command with this fence number, between stream_begin_fenced() and stream_end(). */
CUresult copy_send_array(const struct box *box, struct stream *stream, uint32_t seq);
