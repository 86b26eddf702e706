/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from and to memory that the GPU does not reach. A few bytes travel in the command itself.
 * More goes through the staging slots in chunks: while the GPU moves one chunk, the thread copies
 * the next. Several threads share a large copy; each takes the next chunk when it is done with one.
 */
#pragma once

#include "client_copy.h"

/* One side is the program's own memory, the other in the window or an array. Returns when the
 * program's memory is not used any more. In copy_pageable.c. */
CUresult copy_upload(const struct box *box, struct stream *stream);
CUresult copy_download(const struct box *box, struct stream *stream);
