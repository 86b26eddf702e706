/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is recorded of a client's launches, for its counters and for reports of faults.
 */
#pragma once

#include "session.h"

/* Records `count` launches that are about to be made, the last of which is of `function`, a handle,
 * whose name is `kernel`. It comes before the driver's call, because a fault may be noticed sooner
 * than that returns. */
void launch_record(struct session *session, unsigned count, uint64_t function, const char *kernel);

/* From any thread: how many launches the client has made. */
uint64_t launch_count(const struct session *session);

/* From any thread: how many of them came alone, with neither another launch nor a fence behind. */
uint64_t launch_lone_count(const struct session *session);

/* From any thread: how many fences it has asked for. */
uint64_t launch_fence_count(const struct session *session);

/* From any thread: the name of the kernel that was launched last, or "(none)". */
void launch_last_kernel(struct session *session, char *ret_name, size_t size);
