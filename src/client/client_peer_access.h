/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that reach each other's memory. */
#ifndef FUNNEL_CLIENT_PEER_ACCESS_H
#define FUNNEL_CLIENT_PEER_ACCESS_H

#include "client_memory.h"

/* A copy on a stream of `device` is about to touch an address, perhaps another device's. */
void peer_prepare_copy(struct device *device, uint64_t address);

#endif
