/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device printf output, on its way to the program's own standard output. As with CUDA it is written
 * in calls that synchronize, and not in those that only ask. But the driver's buffer holds only a
 * megabyte. So a call that asks has the server empty it, and keeps up to a megabyte of output for
 * the next call that synchronizes.
 */
#pragma once

#include <stdatomic.h>

#include "client.h"

extern atomic_bool printf_output_is_kept;     /* atomic */
extern uint64_t printf_output_empty_pause_ns; /* only tests change it */

/* Called once while attaching. */
void printf_output_init(void);

/* Writes all that waits or is kept. The caller holds no lock of ours: the program may be inside
 * stdio. */
void printf_output_write_all(void);

/* Takes the waiting output, and keeps it. */
void printf_output_keep(void);

/* Has the server collect what kernels have printed, and writes it. It waits for the server's
 * answer; apart from that as printf_output_write_all(). */
void printf_output_collect_all(void);

/* Has the server collect, and waits for nothing. */
void printf_output_order(void);

/* The same, and writes the output that has arrived before. */
void printf_output_collect_later(void);

/* Called where a thread reports an error; costs two loads where nothing is printed. */
static inline void printf_output_write(void)
{
    if (channel_has_output(&client->channel) ||
        atomic_load_explicit(&printf_output_is_kept, memory_order_relaxed))
        printf_output_write_all();
}

/* Whether to ask the server. Where kernels may print and never do, each answer costs as much as a
 * short kernel. After PRINTF_EMPTY_MOST answers without output, the client asks every 2 ms at most,
 * until there is some. */
#define PRINTF_EMPTY_MOST 256u
bool printf_output_is_due(void);

/* Called where output is to come out at all events: three loads where nothing is printed. */
static inline void printf_output_collect_now(void)
{
    if (channel_output_pending(&client->channel))
        printf_output_collect_all();
    printf_output_write();
}

/* Called wherever a thread of the program has synchronized, once. */
static inline void printf_output_collect(void)
{
    if (channel_output_pending(&client->channel) && printf_output_is_due())
        printf_output_collect_all();
    printf_output_write();
}

/* The same after a wait for an event, behind which the program may have launched much. Where the
 * server has not taken all of that yet, its answer would come late. So the client only asks it to
 * collect, and the next call writes the output. */
static inline void printf_output_collect_promptly(void)
{
    if (!channel_output_pending(&client->channel) || ring_is_drained(&client->channel.ring))
        printf_output_collect();
    else if (printf_output_is_due())
        printf_output_collect_later();
    else
        printf_output_write();
}

/* Called before the region is given up. */
static inline void printf_output_take(void)
{
    if (channel_has_output(&client->channel))
        printf_output_keep();
}

/* Called wherever a thread of the program only asks and hears that work is done. */
static inline void printf_output_ask(void)
{
    if (channel_output_pending(&client->channel) && printf_output_is_due())
        printf_output_order();
    printf_output_take();
}
