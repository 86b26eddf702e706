/* SPDX-License-Identifier: Apache-2.0 */
/* Serves page faults of the program in managed memory. */
#pragma once

#include "managed_allocation.h"

/* Makes sure that a thread serves page faults. False when there is none. */
bool fault_prepare(struct device *device);
