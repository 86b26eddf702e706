/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders to programs that they leave their devices, or return: the daemon's, which are answered
 * when they are done, and those of eviction.h. The sessions' threads follow them
 * (program_suspend.h).
 */
#pragma once

#include "server_protocol.h"

struct server;
struct session;

/* The main thread: begins what the daemon has ordered, and answers when it is done. `envelope` is
 * the caller's. It is -1, or the end of a socket with two descriptors of a file for the contents.
 * One is to write; the other is only to read, and the client gets it. */
void suspend_order_begin(struct server *server, const struct server_suspend_client *order,
                         int envelope);

struct swap_part;

/* Any thread with the server's lock, of a client that runs, or of an evicted one whose memory has
 * left in part. It shall leave for others, with that part of its memory, or with all (NULL). The
 * second reminds its thread, and the third takes the order back if it is not on its way. */
void suspend_order_evict_locked(struct session *session, const struct swap_part *part);
void suspend_order_repeat_locked(struct session *session);
void suspend_order_withdraw_locked(struct session *session);
