/* SPDX-License-Identifier: Apache-2.0 */
/* The counter of launches, and the name of the last kernel. */
#include "launch_record.h"

#include "cleanup.h"
#include "launch_state.h"
#include "text.h"

void launch_record(struct session *session, unsigned count, uint64_t function, const char *kernel)
{
    struct session_launch *launch = session->launch;
    /* Only this thread writes it, so this need not be one step. Partner: launch_count(). */
    uint_fast64_t so_far = atomic_load_explicit(&launch->count, memory_order_relaxed);

    atomic_store_explicit(&launch->count, so_far + count, memory_order_relaxed);
    if (launch->last_function == function)
        return;
    launch->last_function = function;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&launch->lock);
    text_copy(launch->last_kernel, sizeof(launch->last_kernel), kernel);
}

uint64_t launch_count(const struct session *session)
{
    return session->launch->count;
}

uint64_t launch_lone_count(const struct session *session)
{
    return session->launch->lone;
}

uint64_t launch_fence_count(const struct session *session)
{
    return session->launch->fences;
}

void launch_last_kernel(struct session *session, char *ret_name, size_t size)
{
    struct session_launch *launch = session->launch;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&launch->lock);

    text_copy(ret_name, size, launch->last_kernel[0] ? launch->last_kernel : "(none)");
}
