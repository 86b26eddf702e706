/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving to another server when the one there was is gone: because a kernel of some program took
 * the context with it, or because it died. The client's memory is still there, held by descriptors,
 * and its handles are its own. So a client that had no work in flight makes everything again where
 * it was. One that had, or that has something that can not be made again, hears the error.
 */
#ifndef FUNNEL_CLIENT_RECOVERY_H
#define FUNNEL_CLIENT_RECOVERY_H

#include "client.h"

/* When the client has been made. */
void recovery_init(void);

/* What is wrong with the server, now that another was tried if that makes sense: CUDA_SUCCESS where
 * nothing is, or not any more. For places where a thread may wait: it changes nothing that other
 * threads inside might need, and looks at everything anew afterwards. */
CUresult recovery_error_slowly(void);

static inline CUresult recovery_error(void)
{
    return channel_error(&client->channel) == CUDA_SUCCESS ? CUDA_SUCCESS : recovery_error_slowly();
}

#endif
