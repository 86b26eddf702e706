/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advises clients to change to the other context of a device. Others then have long work in theirs,
 * and nobody has any in the other one. It also advises clients to leave the spare context when the
 * primary one has had no long work for a while. The daemon places new programs by what is seen here
 * (funneld/servers/spare_lane.h).
 */
#pragma once

#include "server.h"

/* The watchdog's, ten times a second. Without spare contexts and FUNNEL_SPARE_LANE=1 it
 * does nothing. */
void long_work_watch(struct server *server);

/* From any thread: whether a client has long work in the primary context of a device. */
bool long_work_is_seen(const struct server *server);
