/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving to another server when the one there was is gone. It died, or a kernel of some program
 * took the context with it. The client's memory is still there, held by descriptors, and its
 * handles are its own. So a client that had no work in flight makes everything again where it was.
 * One that had, or that has something that cannot be made again, reports the error.
 */
#pragma once

/* Called once while attaching: from then on recovery_error() may move the client. */
void recovery_init(void);
