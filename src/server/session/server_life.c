/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrival and departure of clients. All of it runs on the main thread, which never waits for a
 * client or for the driver.
 */
#include "server_life.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "abort_launches.h"
#include "attach_client.h"
#include "cleanup.h"
#include "daemon_report.h"
#include "descriptor_limit.h"
#include "fd.h"
#include "limits_text.h"
#include "log.h"
#include "session_leave.h"
#include "session_life.h"
#include "sock.h"
#include "text.h"

/* What a client takes besides its socket and its process: two of its window, its region and its
 * table during the attach. With some for its first work. */
#define ATTACH_DESCRIPTORS 4u
#define WORK_DESCRIPTORS 8u

static void add_session(struct server *server, struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_append(&server->sessions, &session->link);
    server->life->session_count++;
}

static void remove_session(struct server *server, struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_remove(&session->link);
    server->life->session_count--;
}

static bool has_gone(const struct session *session)
{
    return session->life->process_ended || sock_hung_up(session->socket);
}

/* A terminated client keeps its slot, without a thread, until its process closes the socket. */
static bool is_over(const struct session *session)
{
    return session->phase == SESSION_DONE &&
           (!session->window || session->life->distrusted || has_gone(session) ||
            session->life->end_status == CUDA_SUCCESS);
}

static void reap(struct server *server, struct session *session)
{
    log_debug("Session %u is over", session->id);
    pthread_join(session->life->thread, NULL);
    remove_session(server, session);
    daemon_report_move_ends(server, session);
    daemon_report_client_gone(server, session);
    session_destroy(session);
}

static void update_session(struct server *server, struct session *session)
{
    uint32_t request, obstacle, wished;

    if (!session->life->announced && session->life->attached) {
        session->life->announced = true;
        daemon_report_client_attached(server, session);
    }
    if (session_leave_answer(session, &request, &obstacle))
        daemon_report_client_stays(server, request, obstacle);
    if (session_leave_take_wish(session, &wished))
        daemon_report_move_wish(server, session, wished);
    if (is_over(session))
        reap(server, session);
}

/* The number of ended clients, if a kernel of one still runs. Clients that can be destroyed now do
 * not count. */
static unsigned count_abandoned(const struct server *server)
{
    unsigned ended = 0;
    bool goes_on = false;

    list_for_each (struct session, session, &server->sessions, link) {
        ended += session->life->abandoned || (session->phase == SESSION_DONE && !is_over(session));
        goes_on |= session->life->abandoned;
    }
    return goes_on ? ended : 0;
}

/* The daemon replaces a server that no other client uses. */
static void report_abandoned(struct server *server)
{
    unsigned abandoned = count_abandoned(server);
    bool heap_used = atomic_load(&server->heap_used);

    if (abandoned == server->life->abandoned && heap_used == server->life->heap_used)
        return;
    if (heap_used && !server->life->heap_used)
        log_line("Kernels of a client allocate memory. What they do not free stays taken in this "
                 "server; the daemon replaces it when it has no clients");
    server->life->abandoned = abandoned;
    server->life->heap_used = heap_used;
    daemon_report_abandoned(server);
}

static void update_all_sessions(struct server *server)
{
    report_abandoned(server);
    list_for_each_safe (struct session, session, &server->sessions, link)
        update_session(server, session);
    if (server->life->leaving && list_empty(&server->sessions))
        loop_stop(server->life->loop);
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

    if (write(server->life->notify_fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
        log_line("The main thread cannot be woken: %s", strerror(errno));
}

static void end_for_client(struct session *session)
{
    if (session->phase == SESSION_DONE)
        server_notify(session->server);
    else
        session_stop(session, CUDA_SUCCESS);
}

/* Also called for every message that the session's thread is going to read. */
static void on_hang_up(void *context, int fd)
{
    struct session *session = context;

    if (!sock_hung_up(fd))
        return;
    /* The client sends nothing more. The server's own actions on the socket would cause events
     * until the session has ended. */
    watch_destroy(steal_pointer(session->life->hang_up));
    end_for_client(session);
}

/* The client may have sent its end of the connection to the server, in a message that is never
 * read. Then it stays open after the process. */
static void on_process_end(void *context, int fd)
{
    struct session *session = context;

    watch_destroy(steal_pointer(session->life->process_end));
    session->life->process_ended = true;
    end_for_client(session);
}

/* Where the kernel names no process the connection alone tells its end. */
static void watch_process(struct session *session)
{
    struct session_life *life = session->life;

    if (!sock_peer_process(session->socket, &life->process))
        life->process_end = loop_watch_readable(session->server->life->loop, life->process,
                                                on_process_end, session);
}

/* Whether the user has reached its quota of clients; the server's own user may use all slots. */
static bool has_all_slots(const struct server *server, const struct server_identity *who)
{
    uint64_t count = 0;

    list_for_each (struct session, session, &server->sessions, link)
        count += session->identity.owner == who->owner;
    return who->uid != geteuid() && count >= quota(QUOTA_SLOTS);
}

/* The kernel gives the lowest number that is free, so a number tells how many are in use at least.
 * Clients that attach are about to take theirs. */
static bool are_descriptors_short(const struct server *server, int socket)
{
    unsigned attaching = 1;

    list_for_each (struct session, session, &server->sessions, link)
        attaching += session->phase == SESSION_ATTACHING;
    return (uint64_t)socket + attaching * (uint64_t)ATTACH_DESCRIPTORS + WORK_DESCRIPTORS >
           descriptor_limit();
}

/* Why this client cannot be taken, or NULL. */
static const char *refusal_reason(const struct server *server, const struct server_client *who,
                                  int socket, CUresult *ret_status)
{
    *ret_status = CUDA_ERROR_MPS_SERVER_NOT_READY;
    if (server->life->leaving)
        return "the server is shutting down";
    if (server->faulted)
        return "the server is recovering from a fatal error";
    *ret_status = CUDA_ERROR_MPS_MAX_CLIENTS_REACHED;
    if (server->life->session_count >= server->life->clients_max)
        return "the server has reached its limit of clients";
    if (are_descriptors_short(server, socket))
        return "the server has too few descriptors left. If its limit of open files is too "
               "low, " DESCRIPTORS_REMEDY;
    return has_all_slots(server, &who->identity)
               ? "its user has as many clients there as the quota of slots"
               : NULL;
}

static void refuse_client(struct server *server, const struct server_client *who, int socket,
                          CUresult status, const char *why)
{
    log_with(LOG_EVENT(who->identity.pid, status),
             "Client {PID: %d} is refused with status %d: %s (%u clients of at most %u)",
             who->identity.pid, status, why, server->life->session_count,
             server->life->clients_max);
    attach_refuse(socket, status, "%s", why);
    daemon_report_client_refused(server, who->id, status, why);
    fd_close(&socket);
}

static void log_identity(const struct session *session)
{
    char text[IDENTITY_TEXT_MAX];

    identity_describe(&session->identity, text);
    session_log(session, " is of %s", text);
}

void server_take_client(struct server *server, const struct server_client *who, int socket)
{
    CUresult status;
    const char *why = refusal_reason(server, who, socket, &status);

    if (why) {
        refuse_client(server, who, socket, status, why);
        return;
    }
    struct session *session = session_create(server, who, who->id);
    if (!session) {
        refuse_client(server, who, socket, CUDA_ERROR_OUT_OF_MEMORY, "the server is out of memory");
        return;
    }
    session->socket = socket;
    add_session(server, session);
    log_line("Received new client request for " CLIENT_FORMAT, CLIENT_ARGS(session));
    log_identity(session);
    log_line("Creating worker thread for client " CLIENT_FORMAT, CLIENT_ARGS(session));
    session->life->hang_up = loop_watch_changes(server->life->loop, socket, on_hang_up, session);
    watch_process(session);
    if (!session->life->hang_up || session_start(session)) {
        remove_session(server, session);
        refuse_client(server, who, fd_steal(&session->socket), CUDA_ERROR_OUT_OF_MEMORY,
                      "the server is out of threads");
        session_destroy(session);
    }
}

static void end_all_sessions(struct server *server)
{
    list_for_each (struct session, session, &server->sessions, link) {
        session_fail(session, CUDA_ERROR_MPS_RPC_FAILURE);
        session_stop(session, CUDA_SUCCESS);
    }
}

void server_leave(struct server *server, bool force)
{
    if (!server->life->leaving)
        log_line(force ? "Server is shutting down" : "Server exits after its last client");
    server->life->leaving = true;
    if (force)
        end_all_sessions(server);
    if (force || list_empty(&server->sessions))
        loop_stop(server->life->loop);
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
    who.id = ++server->life->last_id;
    who.identity.pid = pid;
    who.identity.uid = uid;
    who.identity.gid = gid;
    server_take_client(server, &who, socket);
}

int server_listen(struct server *server, const char *path)
{
    int error = sock_listen(path, 0600, &server->life->listen_fd);

    if (error)
        return error;
    return loop_watch_readable(server->life->loop, server->life->listen_fd, on_connection, server)
               ? 0
               : -ENOMEM;
}

/* ---- its own part ---- */

int server_life_init(struct server *server, void (*serve)(struct session *session))
{
    server->life = calloc(1, sizeof(*server->life));
    if (!server->life)
        return -ENOMEM;
    server->life->serve = serve;
    list_init(&server->life->unnoted_gone);
    server->life->control_fd = -1;
    server->life->listen_fd = -1;
    return 0;
}

void server_life_fini(struct server *server)
{
    free(server->life);
}

int server_life_start(struct server *server)
{
    struct server_life *life = server->life;

    server->on_heap_use = abort_launches_share_heap() ? server_notify : NULL;
    life->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (life->notify_fd < 0)
        return -errno;
    life->loop = loop_create();
    if (!life->loop)
        return -ENOMEM;
    return loop_watch_readable(life->loop, life->notify_fd, on_notify, server) ? 0 : -ENOMEM;
}
