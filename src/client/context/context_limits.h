/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of contexts: stack size, device printf buffer, and the like. */
#pragma once

#include "client_context.h"

/* Sets the limits that the program has set again, with another server. Returns the server's error.
 */
CUresult context_replay_limits(const struct context *context);
