/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on streams that the files of this folder share. */
#pragma once

#include "client_stream.h"

/* State that the streams of a device share. */
struct stream_group *stream_group_of(const struct device *device);

/* A stream that ends with its context; NULL = no memory, or no fence word is free. */
struct stream *stream_create(struct context *context, enum stream_kind kind, int priority);
