/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of managed variables, up to the device and down. */
#pragma once

#include "managed_variable.h"

void managed_copy_init(void);

/* Makes sure that there is a stream to copy on. */
CUresult managed_copy_prepare(struct device *device);

/* Takes over what the server's copy contains: also as the program's, if that has not seen it.
 * Waits for the device. */
CUresult managed_fetch(struct managed_variable *variable, bool fresh);

/* Waits for what was sent: nothing reads the page-locked copies any more. */
void managed_copy_settle(void);

/* The hooks of managed_hooks.h. */
void managed_copy_push(struct stream *stream);
void managed_copy_count_work(void);
void managed_copy_pull(void);
