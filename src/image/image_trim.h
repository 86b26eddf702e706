/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes the parts of a fat binary that no device of this machine runs. Libraries have code for
 * all architectures; a driver loads one part, so the client need not send the others. The function
 * holds no state and takes no lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Makes a container with only the parts that a driver could choose for devices of these
 * architectures (90 = compute capability 9.0). These are the newest machine code and the newest PTX
 * that each device runs, and parts of unknown kinds. The caller frees it. False when all parts are
 * needed, none would be left, the container is not sound, or memory is short. */
bool image_trim(const void *container, size_t size, const unsigned *sms, unsigned count,
                void **ret_bytes, size_t *ret_size);
