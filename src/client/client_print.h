/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program's kernels print, on the way to the program's own standard output. CUDA brings it
 * out in calls that synchronise; so do we, and also while waiting, since the server holds a fence
 * back until the text before it has been taken.
 */
#ifndef FUNNEL_CLIENT_PRINT_H
#define FUNNEL_CLIENT_PRINT_H

#include "client.h"

/* Writes all that waits. Holds no other lock of ours while it does: the program may be inside
 * stdio. */
void client_print_waiting(void);

/* Called wherever a thread waits, asks or reports; costs a program that prints nothing one load. */
static inline void client_print(void)
{
    if (channel_has_text(&client->channel))
        client_print_waiting();
}

#endif
