/* SPDX-License-Identifier: Apache-2.0 */
/* Distributes the output of the driver's buffers to clients. */
#pragma once

#include "print_state.h"

/* Distributes the driver's output of a context to the clients whose kernels printed it. Returns
 * whether there was output. The caller holds the context's `collecting`. */
bool printf_distribute_held(struct server_printf *printer, unsigned context);

/* Moves a client's output into its region, as far as it fits. Returns whether that was all. */
bool printf_deliver(struct session *session);
