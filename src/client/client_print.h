/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program's kernels print, on the way to the program's own standard output. As with CUDA
 * it comes out in calls that synchronise, and not in those that only ask. But the server holds a
 * fence back until the text before it has been taken, so whoever asks takes it and keeps it for the
 * next that synchronises: a megabyte of it, which is as much as CUDA's own buffer holds.
 */
#ifndef FUNNEL_CLIENT_PRINT_H
#define FUNNEL_CLIENT_PRINT_H

#include "client.h"

/* Writes all that waits or is kept. Holds no other lock of ours while it does: the program may be
 * inside stdio. */
void client_print_all(void);

/* Takes what waits. */
void client_print_keep(void);

/* Called wherever a thread synchronises or reports; costs a program that prints nothing two loads.
 */
static inline void client_print(void)
{
    if (channel_has_text(&client->channel) ||
        __atomic_load_n(&client->keeps_text, __ATOMIC_RELAXED))
        client_print_all();
}

/* Called wherever a thread only asks. */
static inline void client_take_text(void)
{
    if (channel_has_text(&client->channel))
        client_print_keep();
}

#endif
