/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses that clients reserve. Reservations are parts of holdings, which come from an area that
 * all clients share. Holdings return there when the client has gone, because queued work, graphs
 * and textures may use addresses of a reservation that has ended.
 *
 * Functions are the session thread's.
 */
#pragma once

#include "session.h"

/* Whether all of [address, address + size) is in one reservation of the client. */
bool reservation_covers(const struct session *session, uint64_t address, uint64_t size);

/* Ends all of them. The client's mappings have gone. */
void reservations_end(struct session *session);
