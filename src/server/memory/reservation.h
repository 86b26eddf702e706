/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses that clients reserve. Reservations are parts of holdings, which come from the area that
 * all clients share and go back there when the client has gone: work that is still queued, graphs
 * and textures may have addresses of a reservation that has ended.
 *
 * Functions are the session thread's.
 */
#pragma once

#include "session.h"

/* Whether all of [address, address + size) is in one reservation of the client. */
bool reservation_covers(const struct session *session, uint64_t address, uint64_t size);

/* Ends all of them. The client's mappings have gone. */
void reservations_end(struct session *session);
