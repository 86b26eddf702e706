/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel groups of this process, and how long the GPU runs each before it switches to another
 * process: the time slice. NVIDIA's driver makes a group (class KEPLER_CHANNEL_GROUP_A) for each
 * context and engine. The driver does not publish the handles, so the server reads them from its
 * calls of ioctl() (rm_call.h, ctrla06c.h of NVIDIA's open kernel modules).
 *
 * The driver sets the slice of a group itself while it creates the context, and would overwrite an
 * earlier one. So channel_groups_apply() sets the slices some time after a group was created.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* After an ioctl() of this process that has succeeded, from any thread. */
void channel_groups_see(int fd, unsigned long request, const void *argument);

/* From any thread. The slice, in microseconds, of all present and later compute groups of this
 * process; 0 = the driver's own. Takes effect with the next channel_groups_apply(). */
void channel_groups_set_slice(uint64_t us);

/* From any thread. Whether the driver has refused the slice that was set last. */
bool channel_groups_are_refused(void);

/* One thread. Sets the slice of new groups, and logs the driver's refusal once. */
void channel_groups_apply(void);
