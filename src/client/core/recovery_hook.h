/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread may wait, and where it enters the library, it asks whether the server is still
 * there. If it is not, src/client/recovery may move the client to another one at this place. It may
 * also ask for a move to another lane.
 */
#pragma once

#include "client.h"

/* Set once while attaching; see recovery_error_slowly(). Without it a lost server stays lost. */
extern CUresult (*recovery_hook)(void);

/* Set together with it; see recovery_consider_move(). */
extern void (*recovery_wish_hook)(void);

/* Set together with it; see recovery_consider_leaving(). */
extern void (*recovery_leave_hook)(void);

/* Set together with it; see recovery_join(). */
extern void (*recovery_join_hook)(uint32_t server);

/* What is wrong with the server, after another one was tried where that is possible: CUDA_SUCCESS
 * when nothing is, or not any more. For places where a thread may wait: it changes nothing that
 * other threads inside might need, and the caller reads everything anew afterwards. */
CUresult recovery_error_slowly(void);

/* The same, and one load while the server is well. */
static inline CUresult recovery_error(void)
{
    return channel_error(&client->channel) == CUDA_SUCCESS ? CUDA_SUCCESS : recovery_error_slowly();
}

/* client_error(), for the begin and the end of a call. The server may have ended since the thread
 * came in, and the program hears of that only where no other one takes the client. */
static inline CUresult recovery_client_error(void)
{
    if (channel_error(&client->channel) == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    recovery_error_slowly();
    return client_error();
}

/* Before a call of the server that may wait for all kernels of a context. If the server says so,
 * and nothing is in flight, the client asks for a lane without long kernels, and waits for the
 * answer. The calling thread holds no lock. Whatever comes of it, the call can be made. It also
 * asks the kernel whether the server is still there, because an image travels through the socket,
 * and no caller waits there. */
static inline void recovery_consider_move(void)
{
    if (!channel_alive(&client->channel))
        recovery_error_slowly();
    else if (channel_move_wanted(&client->channel) && recovery_wish_hook)
        recovery_wish_hook();
}

/* A name of cuIpc is not known here, and that server knows it, as the name says. Asks for a move to
 * its lane, and waits for that. Afterwards the name may be known, also where another thread has
 * moved the client since. The calling thread holds no lock. */
static inline void recovery_join(uint32_t server)
{
    if (server && recovery_join_hook)
        recovery_join_hook(server);
}

/* Where a thread may wait, as for recovery_error(). If the daemon has ordered a move to another
 * server and it is possible now, the client moves here. It waits for what is in flight. */
static inline void recovery_consider_leaving(void)
{
    if (channel_leave(&client->channel) && recovery_leave_hook)
        recovery_leave_hook();
}
