/* SPDX-License-Identifier: Apache-2.0 */
/* See suspend_arrival.h. */
#include "suspend_arrival.h"

#include "cleanup.h"
#include "log.h"
#include "server_dispatch.h"
#include "session_life.h"
#include "suspend_move.h"
#include "swap.h"
#include "swapping.h"

bool suspend_arrival_is_awaited(const struct session *session)
{
    return session->life->hello.window_base && !program_suspend_of(session)->has_arrived;
}

/* In place of an order that has come meanwhile. */
static void enter_suspended(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    suspend->order = ++session->server->swapping->orders;
    suspend->for_others = suspend->to_file = false;
    suspend_file_close(&suspend->file);
    suspend->evict = swap_returns(session);
    suspend->kind = suspend->followed = SERVER_SUSPEND_LEAVE;
    suspend->out = true;
    suspend->wanted = 1;
}

CUresult serve_fnGranulesAdopted(struct session *session, const struct wire_fnGranulesAdopted *in)
{
    if (swap_bytes_in_all(session)) {
        enter_suspended(session);
        session_log(session, " comes %s: %llu MiB are in a file",
                    program_suspend_of(session)->evict ? "back" : "suspended",
                    (unsigned long long)(swap_bytes_in_all(session) >> 20));
    }
    program_suspend_of(session)->has_arrived = true;
    atomic_fetch_or(&session->limits.changed, CHANGED_SUSPEND);
    return CUDA_SUCCESS;
}
