/* SPDX-License-Identifier: Apache-2.0 */
/* Events: to wait for one is to wait for a fence; only timing asks the server. */
#ifndef FUNNEL_CLIENT_EVENT_H
#define FUNNEL_CLIENT_EVENT_H

#include "client_stream.h"

void event_destroy_all(struct context *context);

bool event_exists(CUevent handle);

/* Behind the last record; one that has passed if there is none. */
struct fence event_fence(CUevent handle);

/* The calls of these names, for work that no longer has to ask whether it is captured. */
CUresult event_record_on(CUevent handle, struct stream *stream);
CUresult event_wait_on(CUevent handle, struct stream *stream);

#endif
