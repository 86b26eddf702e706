/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the server's own, kept for the next use: to make and to end one takes the driver's
 * lock, which somebody may hold for long.
 */
#pragma once

#include "device.h"

/* The device's context is current here and below. What was asked of the event before is over with
 * its next record. */
CUresult spare_event_take(const struct device *device, CUevent *ret_event);
void spare_event_keep(const struct device *device, CUevent event);
