/* SPDX-License-Identifier: Apache-2.0 */
/* Events: to wait for one is to wait for a fence; only timing asks the server. */
#pragma once

#include "client_stream.h"

void event_destroy_all(struct context *context);

/* Makes it again with another server, which knows nothing of its records. */
CUresult event_replay(const void *event);

bool event_exists(CUevent handle);

/* Behind the last record; one that has passed if there is none. */
struct fence event_fence(CUevent handle);
/* Whether other processes may have it: made with CU_EVENT_INTERPROCESS, or opened. */
bool event_is_shared(CUevent handle);

/* An event for the library itself, which no context ends: its handle, or 0 without memory. */
uint64_t event_create_own(struct context *context);

/* A new handle for another process's event, by the name that it has with the server. */
CUresult event_open(struct context *context, uint64_t key0, uint64_t key1, CUevent *ret_event);

/* cuEventRecord and cuStreamWaitEvent for work that is known not to be captured. */
CUresult event_record_on(CUevent handle, struct stream *stream);
CUresult event_wait_on(CUevent handle, struct stream *stream);
