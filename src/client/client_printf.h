/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program's kernels print, on the way to the program's own standard output. As with CUDA
 * it comes out in calls that synchronise, and not in those that only ask. But the server holds a
 * fence back until the text before it has been taken, so whoever asks takes it and keeps it for the
 * next that synchronises: a megabyte of it, which is as much as CUDA's own buffer holds.
 */
#ifndef FUNNEL_CLIENT_PRINTF_H
#define FUNNEL_CLIENT_PRINTF_H

#include "client.h"

/* Writes all that waits or is kept. Holds no other lock of ours while it does: the program may be
 * inside stdio. */
void printf_output_write_all(void);

/* Takes what waits. */
void printf_output_keep(void);

/* Called wherever a thread synchronises or reports; costs a program that prints nothing two loads.
 */
static inline void printf_output_write(void)
{
    if (channel_has_output(&client->channel) ||
        __atomic_load_n(&client->keeps_output, __ATOMIC_RELAXED))
        printf_output_write_all();
}

/* Called wherever a thread only asks. */
static inline void printf_output_take(void)
{
    if (channel_has_output(&client->channel))
        printf_output_keep();
}

#endif
