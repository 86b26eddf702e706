/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device printf output, on its way to the program's own standard output. As with CUDA it is written
 * in calls that synchronize, and not in those that only ask. But the server holds a fence back
 * until the output before it has been taken, so a call that asks takes it and keeps it for the next
 * one that synchronizes: a megabyte of it, which is as much as CUDA's own buffer holds.
 */
#pragma once

#include <stdatomic.h>

#include "client.h"

extern atomic_bool printf_output_is_kept; /* atomic */

/* Called once while attaching. */
void printf_output_init(void);

/* Writes all that waits or is kept. The caller holds no lock of ours: the program may be inside
 * stdio. */
void printf_output_write_all(void);

/* Takes what waits, and keeps it. */
void printf_output_keep(void);

/* Called wherever a thread synchronizes or reports; costs two loads where nothing is printed. */
static inline void printf_output_write(void)
{
    if (channel_has_output(&client->channel) ||
        atomic_load_explicit(&printf_output_is_kept, memory_order_relaxed))
        printf_output_write_all();
}

/* Called wherever a thread only asks. */
static inline void printf_output_take(void)
{
    if (channel_has_output(&client->channel))
        printf_output_keep();
}
