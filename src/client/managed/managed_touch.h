/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the program where it touches managed memory that it does not have. */
#pragma once

#include "managed_block.h"

/* Makes sure that touches are served. False when there is no thread for that. */
bool touch_prepare(struct device *device);
