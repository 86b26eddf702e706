/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams, events and graphs beyond a quota. A client creates them without waiting for the answer
 * and goes on as if it had succeeded. So the server keeps the object without one of the driver's:
 * its work fails, and its fences are still written. It does not count in the quota, but there may
 * be only so many.
 *
 * All functions are the session thread's.
 */
#pragma once

#include <stdbool.h>

#include "quota.h"
#include "session.h"

enum object_admission {
    OBJECT_CHARGED, /* it counts in the quota */
    OBJECT_REFUSED, /* it is kept without the driver's */
    OBJECT_DROPPED, /* there are too many of those, too: commands that name it are mistakes */
};

/* For a stream or an event that a client wants; the second only whether there may be one more that
 * is refused. What is refused or dropped comes with an error in
 * the log. */
enum object_admission object_admit(struct session *session, enum quota which);

/* Whether the client has fewer refused objects than it may have. Session thread. */
bool object_may_be_refused(const struct session *session);

/* It is there now, or is no more; graphs are charged by their size, so only refused ones are told.
 */
void object_charge(struct session *session, enum quota which, bool uncharged);
void object_uncharge(struct session *session, enum quota which, bool uncharged);
