/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread of the server does that may take long, written down for others to read: stall.h.
 */
#pragma once

#include <stdatomic.h>

/* Begins as zero. */
struct activity {
    _Atomic(const char *) stage; /* a part of the client's life, or NULL while it is served */
    _Atomic(const char *) call;  /* a call of the driver that waits for all kernels, or NULL */
};

/* From now on the calls of the calling thread are written there; the activity outlives it. */
void activity_own(struct activity *activity);

/* The calling thread makes a call that waits for all kernels: `call`, a string that lives as long
 * as the process. NULL after it has returned. Nothing where the thread owns no activity. */
void activity_set_call(const char *call);

/* `stage` as for activity_set_call(). */
void activity_set_stage(struct activity *activity, const char *stage);

/* From any thread: the call, else the stage, else NULL. */
const char *activity_name(const struct activity *activity);
