/* SPDX-License-Identifier: Apache-2.0 */
/* Spare arrays: no client uses them. The device's context is current. Session thread. */
#pragma once

#include "array.h"

/* Gives the array the driver's part of a spare array of the same shape, with its contents: false
 * when there is none. */
bool array_spare_take(struct array *array);

/* Keeps the driver's part of an array that no client uses, or destroys it. */
void array_spare_keep(struct session *session, const struct array *array);

/* Destroys all spare arrays of the device: false when there was none. */
bool array_spares_give_way(struct session *session, const struct device *device);
