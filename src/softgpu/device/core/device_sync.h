/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emulates exclusive calls. In NVIDIA's driver some calls wait for all work of a context and hold
 * its lock meanwhile. So other threads can launch and copy nothing. If a stream waits for such a
 * thread, the process deadlocks. With FUNNEL_SOFT_STALLS it deadlocks here, too, so the bug shows
 * without a GPU. The calls that take the lock have the word `lock` in api/. They wait at their
 * entry (soft_entry.h) while another stalls the current context of their thread. Other contexts,
 * also of the same device, are not concerned.
 */
#pragma once

#include <stdatomic.h>

#include "soft_context.h"

/* Waits for all streams of the context, without soft_lock. Returns its sticky error. */
CUresult device_sync_locked(struct context *context);
/* The same where the software GPU itself has no need to wait. */
void device_sync_emulate_locked(struct context *context);

/* NVIDIA's driver keeps streams and graphs in blocks on the device. A block has a capacity of 43 of
 * them, and allocating a block waits for all streams of the context. */
void device_block_take_locked(struct context *context);
void device_block_give_locked(struct context *context);

/* The number of exclusive calls in progress; calls that take the driver's lock wait meanwhile.
 * Changed under soft_lock (device_sync.h). */
extern atomic_uint soft_device_syncs;
void soft_device_sync_wait(void);
