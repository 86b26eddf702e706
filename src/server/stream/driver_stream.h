/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's stream behind a client's stream: its priority, its part of the device, and what
 * replaces it when the client's limits change. A replacement begins behind all that the driver's
 * stream before it was given.
 *
 * Functions are the session thread's.
 */
#pragma once

#include "stream.h"

/* Makes the first one. When it fails the stream has none. In no particular context. */
CUresult driver_stream_make(struct stream *stream);

/* Destroys it; its work goes on. In its context. */
void driver_stream_drop(struct stream *stream);

/* The priority that a client gets when it asks for this one. */
int stream_grant_priority(const struct session *session, const struct device *device, int asked);

/* Takes over limits of the session that have changed: its streams move to the partitions and get
 * the priority that the client may have now. */
void streams_follow_limits(struct session *session);

/* The streams of the client's own share of a device go on in the part that is lent to it, or in its
 * own. */
void streams_change_place(struct session *session, const struct device *device, bool borrows);
