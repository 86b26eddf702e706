/* SPDX-License-Identifier: Apache-2.0 */
/* Events. */
#pragma once

#include "capture.h"
#include "schedule.h"
#include "soft.h"

struct context;
struct shared_event;

struct event {
    uint64_t handle;
    struct context *context;
    unsigned flags;
    struct operation *record;    /* the last one, or NULL */
    struct shared_event *shared; /* instead of that: other processes have it, too */
    struct capture_event capture;
    struct list in_context;
};

/* Takes `shared` over when it succeeds. */
CUresult event_create_locked(struct context *context, unsigned flags, struct shared_event *shared,
                             CUevent *ret_event);
void event_destroy_locked(struct event *event);
void events_drop_context_locked(struct context *context);

/* The record that belongs to a launch, behind it; of a captured one such edges from its node. */
CUresult event_record_of_launch(CUevent handle, CUstream stream, CUgraphEdgeData data);
/* For a launch: CUDA_ERROR_INVALID_HANDLE, or CUDA_ERROR_NOT_SUPPORTED for an event with a time. */
CUresult event_check_of_launch(CUevent handle);
/* Prepares a record or a wait; one of the next two functions decides, just before it begins. */
CUresult event_prepare_locked(CUevent handle, struct operation **ret_operation);
void event_recorded_locked(CUevent handle, struct operation *record);
void event_awaited_locked(CUevent handle, struct operation *wait);
