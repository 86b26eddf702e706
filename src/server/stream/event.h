/* SPDX-License-Identifier: Apache-2.0 */
/* An event of a client. */
#pragma once

#include "device.h"
#include "session.h"

struct ipc_share;

struct event {
    CUevent driver;          /* NULL when it was refused by the driver or a quota, or is shared */
    struct ipc_share *share; /* what the driver's events belong to, once other clients have it */
    const struct device *device;
    bool uncharged; /* a quota refused it: refused_objects.h */
};

/* Gives back what the driver holds for it. No work that uses it may still be running, and it is not
 * in the handle table any more. NULL is allowed. */
void event_destroy(struct session *session, struct event *event);
