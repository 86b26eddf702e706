/* SPDX-License-Identifier: Apache-2.0 */
/* Events: to wait for one is to wait for a fence; only timing asks the server. */
#pragma once

#include "client_stream.h"

/* Destroys the events of a context. */
void event_destroy_all(struct context *context);

/* Makes an event (a struct event of the handle table) again, with another server, which knows
 * nothing of its records. With the library closed. */
CUresult event_replay(const void *event);

/* Whether the time of its last record counts, which another context does not know. */
bool event_has_time(const void *event);

/* Whether the handle is that of an event. Takes no lock. */
bool event_exists(CUevent handle);

/* CUDA_ERROR_INVALID_HANDLE for no event, CUDA_ERROR_CAPTURED_EVENT for one whose last record was
 * captured; that capture is invalid from then on. */
CUresult event_check(CUevent handle);

/* The fence of the last record; one that has passed if there is none. Takes the channel lock. */
struct fence event_fence(CUevent handle);
/* Whether such a one is told the time when it is recorded. */
bool event_keeps_time(CUevent handle);
/* Whether other processes may have it: made with CU_EVENT_INTERPROCESS, or opened. */
bool event_is_shared(CUevent handle);

/* An event for the library itself, which no context ends: its handle, or 0 without memory. */
uint64_t event_create_own(struct context *context);

/* A new handle for the event of another process, by its name at the server.
 * CUDA_ERROR_OUT_OF_MEMORY, or the server's error. Waits for the server. */
CUresult event_open(struct context *context, uint64_t key0, uint64_t key1, CUevent *ret_event);

/* cuEventRecord and cuStreamWaitEvent for work that is known not to be captured.
 * CUDA_ERROR_INVALID_HANDLE when there is no such event. */
CUresult event_record_on(CUevent handle, struct stream *stream);
CUresult event_wait_on(CUevent handle, struct stream *stream);

/* The record of an event by a launch that was captured: as such edges from its kernel. */
CUresult event_record_captured(CUevent handle, struct stream *stream, CUgraphEdgeData data);
