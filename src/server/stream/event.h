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

/* The driver's event with the last record, for streams and calls that wait. */
CUevent event_driver(const struct event *event);

/* In the device's context: the driver's event for a record in a stream of that context.
 * CUDA_ERROR_INVALID_HANDLE when it was refused, or what the driver says. */
CUresult event_driver_in(const struct event *event, const struct device *device,
                         CUevent *ret_event);
/* What event_driver_in() gave has been recorded: event_driver() is that one from now on. */
void event_note_record(const struct event *event, CUevent recorded);

/* Gives back what the driver holds for it. No work that uses it may still be running, and it is not
 * in the handle table any more. NULL is allowed. */
void event_destroy(struct session *session, struct event *event);
