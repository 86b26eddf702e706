/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who comes and who goes. All of it happens on the main thread, which never waits for a client or
 * for the driver.
 */
#include "server.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "attach_client.h"
#include "cleanup.h"
#include "copy_fence.h"
#include "cpus.h"
#include "daemon_link.h"
#include "fd.h"
#include "fence_counter.h"
#include "fence_kernel.h"
#include "limits_text.h"
#include "log.h"
#include "page_lock.h"
#include "shared_copy_stream.h"
#include "sock.h"
#include "switch.h"
#include "text.h"

static void add_session(struct server *server, struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_append(&server->sessions, &session->link);
    server->session_count++;
}

static void remove_session(struct server *server, struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_remove(&session->link);
    server->session_count--;
}

bool server_is_empty(struct server *server)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    return list_empty(&server->sessions);
}

/* A terminated client keeps its place, without a thread, until its process lets go of the socket.
 */
static bool is_over(const struct session *session)
{
    return session->phase == SESSION_DONE &&
           (!session->window || session->distrusted || sock_hung_up(session->socket) ||
            session->end_status == CUDA_SUCCESS);
}

static void reap(struct server *server, struct session *session)
{
    log_debug("Session %u is over", session->id);
    pthread_join(session->thread, NULL);
    remove_session(server, session);
    daemon_link_client_gone(server, session);
    session_destroy(session);
}

static void update_session(struct server *server, struct session *session)
{
    if (!session->announced && session->window_taken) {
        session->announced = true;
        daemon_link_client_attached(server, session);
    }
    if (is_over(session))
        reap(server, session);
}

/* Clients that have ended, if a kernel of one goes on. Those that can go now count no longer. */
static unsigned count_abandoned(const struct server *server)
{
    unsigned ended = 0;
    bool goes_on = false;

    list_for_each(struct session, session, &server->sessions, link)
    {
        ended += session->abandoned || (session->phase == SESSION_DONE && !is_over(session));
        goes_on |= session->abandoned;
    }
    return goes_on ? ended : 0;
}

/* The daemon puts a new server in the place of one that nobody else uses. */
static void report_abandoned(struct server *server)
{
    unsigned abandoned = count_abandoned(server);

    if (abandoned != server->abandoned)
        daemon_link_abandoned(server, abandoned);
    server->abandoned = abandoned;
}

static void update_all_sessions(struct server *server)
{
    report_abandoned(server);
    list_for_each_safe(struct session, session, &server->sessions, link)
        update_session(server, session);
    if (server->leaving && list_empty(&server->sessions))
        loop_stop(server->loop);
}

static void on_notify(void *context, int fd)
{
    uint64_t count;

    if (read(fd, &count, sizeof(count)) == (ssize_t)sizeof(count))
        update_all_sessions(context);
}

void server_notify(struct server *server)
{
    uint64_t one = 1;

    if (write(server->done_fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
        log_line("The main thread cannot be woken: %s", strerror(errno));
}

/* Also called for every message that the session's thread is going to read. */
static void on_hang_up(void *context, int fd)
{
    struct session *session = context;

    if (!sock_hung_up(fd))
        return;
    /* It has no more to say. What we do to the socket ourselves would be news, again and again, for
     * as long as the session takes to come to its end. */
    watch_destroy(steal_pointer(session->hang_up));
    if (session->phase == SESSION_DONE)
        server_notify(session->server);
    else
        session_stop(session, CUDA_SUCCESS);
}

/* Why this client can not be taken, or NULL. */
static const char *refusal_reason(const struct server *server, CUresult *ret_status)
{
    *ret_status = CUDA_ERROR_MPS_SERVER_NOT_READY;
    if (server->leaving)
        return "the server is shutting down";
    if (server->faulted)
        return "the server is recovering from a fatal error";
    *ret_status = CUDA_ERROR_MPS_MAX_CLIENTS_REACHED;
    return server->session_count >= server->clients_max
               ? "the server has reached its limit of clients"
               : NULL;
}

static void refuse(struct server *server, const struct server_client *who, int socket,
                   CUresult status, const char *why)
{
    log_line("Client {PID: %d} is refused with status %d: %s (%u clients of at most %u)",
             who->identity.pid, status, why, server->session_count, server->clients_max);
    attach_refuse(socket, status, "%s", why);
    daemon_link_client_refused(server, who->identity.pid, status, why);
    fd_close(&socket);
}

static void log_identity(const struct session *session)
{
    char text[IDENTITY_TEXT_MAX];

    identity_describe(&session->who.identity, text);
    log_line("Client " CLIENT_FORMAT " is of %s", CLIENT_ARGS(session), text);
}

void server_take_client(struct server *server, const struct server_client *who, int socket)
{
    CUresult status;
    const char *why = refusal_reason(server, &status);

    if (why) {
        refuse(server, who, socket, status, why);
        return;
    }
    struct session *session = session_create(server, who);
    if (!session) {
        refuse(server, who, socket, CUDA_ERROR_OUT_OF_MEMORY, "the server is out of memory");
        return;
    }
    session->socket = socket;
    add_session(server, session);
    log_line("Received new client request for " CLIENT_FORMAT, CLIENT_ARGS(session));
    log_identity(session);
    log_line("Creating worker thread for client " CLIENT_FORMAT, CLIENT_ARGS(session));
    session->hang_up = loop_watch_changes(server->loop, socket, on_hang_up, session);
    if (!session->hang_up || session_start(session)) {
        remove_session(server, session);
        refuse(server, who, fd_steal(&session->socket), CUDA_ERROR_OUT_OF_MEMORY,
               "the server is out of threads");
        session_destroy(session);
    }
}

static void end_all_sessions(struct server *server)
{
    list_for_each(struct session, session, &server->sessions, link)
    {
        session_fail(session, CUDA_ERROR_MPS_RPC_FAILURE);
        session_stop(session, CUDA_SUCCESS);
    }
}

void server_leave(struct server *server, bool force)
{
    if (!server->leaving)
        log_line(force ? "Server is shutting down" : "Server exits after its last client");
    server->leaving = true;
    if (force)
        end_all_sessions(server);
    if (force || list_empty(&server->sessions))
        loop_stop(server->loop);
}

static void on_connection(void *context, int listen_fd)
{
    struct server *server = context;
    struct server_client who = {.identity.since = time(NULL)};
    pid_t pid;
    uid_t uid;
    gid_t gid;
    int socket = -1;

    if (sock_accept(listen_fd, &socket) || sock_peer(socket, &pid, &uid, &gid)) {
        fd_close(&socket);
        return;
    }
    who.identity.pid = pid;
    who.identity.uid = uid;
    who.identity.gid = gid;
    server_take_client(server, &who, socket);
}

int server_listen(struct server *server, const char *path)
{
    int error = sock_listen(path, 0600, &server->listen_fd);

    if (error)
        return error;
    return loop_watch_readable(server->loop, server->listen_fd, on_connection, server) ? 0
                                                                                       : -ENOMEM;
}

static void load_fence_kernels(struct devices *devices)
{
    bool count = !switch_is_on("FUNNEL_NO_FENCE_TALLY");

    for (unsigned i = 0; i < devices->count; i++) {
        struct device *device = &devices->device[i];

        fence_kernel_load(device);
        if (device->fence_kernel && count)
            device->fence_counters = fence_counters_create();
    }
}

static void prepare_shared_copies(struct devices *devices)
{
    bool with_shared_stream = !switch_is_on("FUNNEL_NO_COPY_LANE");

    for (unsigned i = 0; i < devices->count; i++) {
        copy_fence_prepare(&devices->device[i]);
        if (with_shared_stream)
            shared_copy_stream_open(&devices->device[i]);
    }
}

int server_init(struct server *server)
{
    pthread_mutex_init(&server->lock, NULL);
    pthread_mutex_init(&server->ipc_lock, NULL);
    map_init(&server->ipc_names);
    list_init(&server->sessions);
    module_cache_init(&server->modules, !switch_is_on("FUNNEL_NO_MODULE_CACHE"));
    if (switch_is_on("FUNNEL_NO_LOCK_PIECES"))
        page_lock_whole();
    if (server->driver_kind == DRIVER_SOFT)
        page_lock_for_soft();
    server->no_spare_partitions = switch_is_on("FUNNEL_NO_SPARE_SHARES");
    server->no_batching = switch_is_on("FUNNEL_NO_LAUNCH_BATCHING");
    if (!server->no_batching && !switch_is_on("FUNNEL_NO_FENCE_KERNEL"))
        load_fence_kernels(&server->devices);
    server->cpus = cpus_available();
    server->no_short_spin = switch_is_on("FUNNEL_NO_BRIEF_SPIN");
    server->no_copy_load = switch_is_on("FUNNEL_NO_COPY_CROWD");
    if (!server->no_copy_load)
        prepare_shared_copies(&server->devices);
    server->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->done_fd < 0)
        return -errno;
    server->loop = loop_create();
    if (!server->loop)
        return -ENOMEM;
    return loop_watch_readable(server->loop, server->done_fd, on_notify, server) ? 0 : -ENOMEM;
}
