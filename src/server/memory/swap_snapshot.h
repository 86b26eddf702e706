/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of a client's memory in free memory of the same devices. A file gets it from there while
 * the client changes its own memory again. Copies within a device are a hundred times as fast as a
 * file, so the client stands still for a moment only.
 *
 * Functions are the session thread's, unless a comment says otherwise. The memory is not charged to
 * the client.
 */
#pragma once

#include "chunk_team.h"
#include "session.h"

struct swap_snapshot;

/* While the client stands still: copies the chunks of all regions but those that the file has
 * already. Has the regions be read from the copy. NULL, and regions as before, when a device would
 * have less than half of its free memory left, or the driver refuses. */
struct swap_snapshot *swap_snapshot_take(struct session *session, struct chunk_region *regions,
                                         unsigned count);

/* When nothing reads it any more. Any thread, which may be in another context afterwards. */
void swap_snapshot_end(struct server *server, struct swap_snapshot *snapshot);

/* Waits, at rest, until the device has the memory of all snapshots back that it has now, or the
 * session ends. It waits half a minute at most. False when none has ended since the client last
 * waited here. One that ended just before counts, since the client may have asked for memory
 * before. */
bool swap_snapshots_await(struct session *session, const struct device *device);
