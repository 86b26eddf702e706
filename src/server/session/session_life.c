/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates sessions with all their parts, runs their threads and ends them.
 */
#include "session_life.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "abort_launches.h"
#include "accounting.h"
#include "array.h"
#include "attach_client.h"
#include "blob.h"
#include "channel_server.h"
#include "cleanup.h"
#include "copy.h"
#include "device_printf.h"
#include "fd.h"
#include "futex.h"
#include "graph.h"
#include "ipc_share.h"
#include "joint_memory.h"
#include "launch.h"
#include "loop.h"
#include "memory.h"
#include "server_life.h"
#include "server_module.h"
#include "session_end.h"
#include "sm_share.h"
#include "stream.h"
#include "suspend.h"
#include "window.h"
#include "window_claim.h"

/* The part of each subsystem. */
static const struct session_part parts[] = {
    {session_blobs_init, session_blobs_fini},
    {session_ipc_init, session_ipc_fini},
    {session_memory_init, session_memory_fini},
    {session_sm_shares_init, session_sm_shares_fini},
    {session_streams_init, session_streams_fini},
    {session_modules_init, session_modules_fini},
    {session_printf_init, session_printf_fini},
    {session_copies_init, session_copies_fini},
    {session_arrays_init, session_arrays_fini},
    {session_launch_init, session_launch_fini},
    {session_graphs_init, session_graphs_fini},
    {session_accounting_init, session_accounting_fini},
};

#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))

static void *session_thread(void *context)
{
    struct session *session = context;

    abort_launches_own(session);
    activity_own(&session->activity);
    if (attach_client(session)) {
        admission_wait(session);
        session->life->attached = true;
        server_notify(session->server);
        session->server->life->serve(session);
    }
    session_clean_up(session);
    abort_launches_disown(session);
    session->phase = SESSION_DONE;
    server_notify(session->server);
    return NULL;
}

static int init_parts(struct session *session)
{
    int error = 0;

    for (unsigned i = 0; i < PART_COUNT && !error; i++)
        error = parts[i].init(session);
    session->life = calloc(1, sizeof(*session->life));
    if (!session->life)
        return -1;
    session->life->process = -1;
    if (!error && session->server->life->upper_part)
        error = session->server->life->upper_part->init(session);
    return error;
}

struct session *session_create(struct server *server, const struct server_client *who, uint32_t id)
{
    struct session *session = malloc(sizeof(*session));

    if (!session || session_init(session, server, &who->identity, id)) {
        free(session);
        return NULL;
    }
    session_limits_init(&session->limits, &who->limits);
    if (init_parts(session)) {
        session_destroy(session);
        return NULL;
    }
    joint_memory_follow(session);
    session->life->hello = who->hello;
    session->life->is_main_lane = who->is_main_lane;
    return session;
}

int session_start(struct session *session)
{
    return -pthread_create(&session->life->thread, NULL, session_thread, session);
}

/* Keeps the claim after a fault, and for a planned move, because the client moves to another
 * server.
 */
static void give_claim_up(const struct session *session)
{
    const struct server *server = session->server;

    if (session->window && !server->faulted && !session->life->leaves)
        window_claim_drop(server->life->claims, session->life->hello.token, session->window->base);
}

void session_destroy(struct session *session)
{
    if (!session)
        return;
    if (session->life) {
        watch_destroy(session->life->hang_up);
        watch_destroy(session->life->process_end);
        fd_close(&session->life->process);
        give_claim_up(session);
        windows_put_back(server_windows(session->server), session->window);
    }
    channel_server_destroy(session->channel);
    if (session->server->life->upper_part)
        session->server->life->upper_part->fini(session);
    for (unsigned i = PART_COUNT; i-- > 0;)
        parts[i].fini(session);
    free(session->life);
    session_fini(session);
    free(session);
}

/* The session's thread creates the channel while others may already want to reach it. */
static struct channel_server *get_channel(struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    return session->channel;
}

void session_kick(struct session *session)
{
    struct channel_server *channel = get_channel(session);

    if (channel)
        channel_server_kick(channel);
}

void session_stop(struct session *session, CUresult status)
{
    int none = 0;

    atomic_compare_exchange_strong(&session->life->end_status, &none, (int)status);
    session->stop = true;
    session_kick(session);
    /* A thread that sends to an unresponsive client must return, too. */
    if (status == CUDA_SUCCESS)
        shutdown(session->socket, SHUT_RDWR);
}

/* The server does not know on which words the client's threads sleep, so it wakes all. */
static void wake_all_fences(const struct window *window)
{
    for (uint32_t word = 0; word < GPU_REGION_FENCES; word++)
        futex_wake(window_fence(window, word), INT_MAX);
}

void session_fail_locked(struct session *session, CUresult status)
{
    if (!session->channel)
        return;
    channel_server_fail(session->channel, status);
    if (session->phase == SESSION_SERVING)
        wake_all_fences(session->window);
}

void session_fail(struct session *session, CUresult status)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    session_fail_locked(session, status);
}

void session_end_locked(struct session *session, CUresult status)
{
    int none = 0;

    session_fail_locked(session, status);
    atomic_compare_exchange_strong(&session->life->end_status, &none, (int)status);
    session->stop = true;
    if (session->channel)
        channel_server_kick(session->channel);
}
