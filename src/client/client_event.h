/* SPDX-License-Identifier: Apache-2.0 */
/* Events: to wait for one is to wait for a fence; only timing asks the server. */
#ifndef FUNNEL_CLIENT_EVENT_H
#define FUNNEL_CLIENT_EVENT_H

#include "client_context.h"

void event_destroy_all(struct context *context);

#endif
