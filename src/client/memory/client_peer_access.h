/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that reach each other's memory. */
#pragma once

#include "client_context.h"

/* Called once while attaching. */
void peer_init(void);

/* Tells a new server which devices reach what. No other thread is inside. Returns the server's
 * error. */
CUresult peer_replay(void);

/* Makes the client's memory of the device `to` reachable from `from`: CUDA_SUCCESS also where it
 * is. CUDA_ERROR_PEER_ACCESS_UNSUPPORTED. May wait for the server. */
CUresult peer_reach(struct device *from, const struct device *to);

/* Whether every visible device can reach the memory of every other one. */
bool peer_all_reach(void);

/* Makes the client's memory of a device reachable from all others. False when that fails. May wait
 * for the server. */
bool peer_let_all_reach(const struct device *home);

/* A copy on a stream of `device` is about to use an address, perhaps another device's. May wait for
 * the server. */
void peer_prepare_copy(struct device *device, uint64_t address);
