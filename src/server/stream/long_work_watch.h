/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advises clients to ask for another lane before they load code, when others have long work here.
 * The daemon places new programs by what is seen here (funneld/servers/spare_lane.h).
 */
#pragma once

#include "server.h"

/* The watchdog's, ten times a second. In a server without --spare it does nothing. */
void long_work_watch(struct server *server);

/* A new client has got its channel, and may ask for another lane or not. Before it is served. */
void long_work_greet(const struct session *session, bool may_ask);

/* On the thread of the session, which has no work: whether others have long work on a device that
 * it uses. Looks at the streams, and takes some hundredths of a second where they are busy. */
bool long_work_is_in_the_way(struct session *session);

/* From any thread: whether a client has long work on a device. */
bool long_work_is_seen(const struct server *server);

/* The main thread, which tells the daemon: the same. */
bool long_work_tell(const struct server *server);

/* The watchdog: whether there is long work now, and was none when the daemon was told last. */
bool long_work_is_news(const struct server *server);
