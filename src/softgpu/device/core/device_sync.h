/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for whom. On NVIDIA's driver some calls wait for all that runs in a context and hold
 * its lock meanwhile, so that no other thread gets a launch or a copy in. Where a stream waits for
 * just such a call of another thread, the process deadlocks. With FUNNEL_SOFT_STALLS it
 * does here too, and the bug is found without a GPU. The calls that take the lock have the word
 * `lock` in api/, and wait at their entry (soft_entry.h) while another stalls the context that is
 * current in their thread. Other contexts, also of the same device, are not concerned.
 */
#pragma once

#include <stdatomic.h>

#include "soft_context.h"

/* Waits for all streams of the context; then its sticky error. Lets go of soft_lock meanwhile. */
CUresult device_sync_locked(struct context *context);
/* The same where the software GPU itself has no need to wait. */
void device_sync_emulate_locked(struct context *context);

/* For what NVIDIA's driver keeps in blocks on the device: streams and graphs. A block has room for
 * 43 of them, and to take one waits for all streams of the context. */
void device_block_take_locked(struct context *context);
void device_block_give_locked(struct context *context);

/* How many calls stall at the moment; those that take the driver's lock stand aside then. Changed
 * under soft_lock (device_sync.h). */
extern atomic_uint soft_device_syncs;
void soft_device_sync_wait(void);
