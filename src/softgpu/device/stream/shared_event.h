/* SPDX-License-Identifier: Apache-2.0 */
/* Events that other processes may have, too. */
#pragma once

#include <stdbool.h>

#include "cuda_abi.h"

struct shared_event;
struct stream;

CUresult shared_event_create_locked(struct shared_event **ret_event);
void shared_event_unref_locked(struct shared_event *event);
CUresult shared_event_record_locked(struct shared_event *event, struct stream *stream);
CUresult shared_event_await_locked(struct shared_event *event, struct stream *stream);
bool shared_event_is_done(const struct shared_event *event);
/* Waits for the last record of the event. Releases soft_lock meanwhile. */
void shared_event_wait_locked(struct shared_event *event);
