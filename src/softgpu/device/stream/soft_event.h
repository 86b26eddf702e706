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
