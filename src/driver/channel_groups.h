/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel groups of this process, and how long the GPU runs each before it switches to another
 * process: the time slice. NVIDIA's driver makes a group (class KEPLER_CHANNEL_GROUP_A) for each
 * context and engine. The driver does not publish the handles, so the server reads them from its
 * calls of ioctl(). Numbers and layouts are those of NVIDIA's open kernel modules (nvos.h,
 * ctrla06c.h).
 *
 * The driver sets the slice of a group while it sets the context up, so a slice that came earlier
 * would be lost. Groups get theirs some time after they were made: channel_groups_apply().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* After an ioctl() of this process that has succeeded, from any thread. */
void channel_groups_see(int fd, unsigned long request, const void *argument);

/* From any thread. Microseconds for the compute groups of this process, also for those that it
 * makes later; 0: what the driver gives. Takes effect with the next channel_groups_apply(). */
void channel_groups_set_slice(uint64_t us);

/* One thread. Gives groups their slice that have not got it yet, and logs once what the driver
 * refuses. */
void channel_groups_apply(void);
