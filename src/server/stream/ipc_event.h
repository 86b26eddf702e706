/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that several clients use: each client has a handle of its own for what they share. The
 * driver records an event only in streams of its own context. So a client on another
 * device records another event of the driver's, and waits are for the last one.
 */
#pragma once

#include "event.h"

/* The driver's event with the last record, for streams and calls that wait. */
CUevent event_driver(const struct event *event);

/* In the device's context: the driver's event for a record in a stream of that context.
 * CUDA_ERROR_INVALID_HANDLE when it was refused, or what the driver says. */
CUresult event_driver_in(const struct event *event, const struct device *device,
                         CUevent *ret_event);
/* What event_driver_in() gave has been recorded: event_driver() is that one from now on. */
void event_note_record(const struct event *event, CUevent recorded);
