/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fat binary has for the devices that are there. Libraries carry code for all architectures;
 * a driver takes one part, and the others need not be sent to it. The function holds no state and
 * takes no lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Makes a container without the parts that none of the devices, of these architectures (90 =
 * compute capability 9.0), would be given: the newest machine code and the newest text that each of
 * them runs stay, as does what is not known here. In memory for the caller to free. False when all
 * of it is needed, nothing would be left, the bytes are no container of sound headers, or there is
 * no memory. */
bool image_trim(const void *container, size_t size, const unsigned *sms, unsigned count,
                void **ret_bytes, size_t *ret_size);
