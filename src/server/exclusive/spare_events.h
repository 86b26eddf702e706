/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the server's own, kept for the next use. To create or destroy one takes the driver's
 * lock, which another thread may hold for long.
 */
#pragma once

#include "device.h"

struct spare_events;

/* The events of one device. NULL when out of memory. */
struct spare_events *spare_events_create(void);

/* The device is not used any more; the driver's events go with the process. NULL is allowed. */
void spare_events_destroy(struct spare_events *spare);

/* From any thread, in the device's context: an event for the caller, or what the driver says. What
 * was asked of the event before is over with its next record. */
CUresult spare_event_take(const struct device *device, CUevent *ret_event);

/* From any thread, in the device's context: gives an event back, whose last record need not have
 * completed. */
void spare_event_keep(const struct device *device, CUevent event);
