/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's orders. */
#include "daemon_link.h"

#include <errno.h>

#include "accounting.h"
#include "channel_groups.h"
#include "claims.h"
#include "cleanup.h"
#include "clock.h"
#include "code_cache.h"
#include "context_hold.h"
#include "daemon_report.h"
#include "descriptor_limit.h"
#include "fault.h"
#include "fd.h"
#include "joint_memory.h"
#include "limits_text.h"
#include "log.h"
#include "memory.h"
#include "next_daemon.h"
#include "pending_order.h"
#include "sensor_watch.h"
#include "server_trace.h"
#include "session_leave.h"
#include "session_life.h"
#include "sm_share.h"
#include "sock.h"
#include "stall.h"
#include "suspend_order.h"
#include "swap.h"
#include "swapping.h"
#include "text.h"
#include "window.h"
#include "window_claim.h"

static void send_row(struct server *server, const struct session *session, uint32_t request)
{
    struct server_status_row row;

    server_message_init(&row, SERVER_STATUS_ROW, request);
    row.limits = session_limits_get(&session->limits);
    row.id = session->id;
    row.state = session->phase == SESSION_SERVING && !session->stop ? SERVER_CLIENT_ACTIVE
                                                                    : SERVER_CLIENT_INACTIVE;
    row.device_mask = session->device_mask;
    for (unsigned i = 0; i < server->devices.count; i++) {
        memory_usage(session, i, &row.memory_used[i], &row.memory_peak[i]);
        row.memory_swapped[i] = swap_bytes(session, i);
        row.sm_granted[i] = sm_share_granted(server, &session->limits, i);
    }
    row.suspended = program_suspend_state(session);
    row.evicted = session->swapping->order.out && session->swapping->order.evict;
    row.memory_refused = memory_refusals(session);
    row.quota_refused = session->quotas.refused;
    for (unsigned i = 0; i < QUOTA_HELD_COUNT; i++)
        row.held[i] = quota_held(session, i);
    accounting_usage(session, &row.usage);
    row.waits_for_room = session->swapping->eviction.in_line > 0;
    row.obstacle = (uint32_t)session->swapping->eviction.obstacle;
    row.rests_ms = rest_eviction_ms(session);
    const char *call = stall_call(session, &row.call_ms);
    text_copy(row.call, sizeof(row.call), call ? call : "");
    daemon_report_send(server, &row);
}

static void describe_swap_pool(const struct server *server, struct server_status_end *end)
{
    const struct swap_pool_usage usage = swap_pool_usage(server);

    end->swap_locked = usage.locked;
    end->swap_used = usage.used;
    end->swap_kept = usage.kept;
}

static void answer_status(struct server *server, uint32_t request)
{
    struct server_status_end end;

    server_message_init(&end, SERVER_STATUS_END, request);
    end.state = server->faulted ? SERVER_FAULTED : SERVER_ACTIVE;
    end.slices_refused = channel_groups_are_refused();
    list_for_each (struct session, session, &server->sessions, link) {
        if (session->phase == SESSION_ATTACHING)
            continue;
        send_row(server, session, request);
        end.client_count++;
    }
    for (unsigned i = 0; i < server->devices.count; i++)
        end.memory_free[i] = server->devices.device[i].memory_free;
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        sensor_watch_get(server->life->sensors, i, clock_ns(), &end.sensors[i]);
    code_cache_describe(server, &end.code_cache);
    describe_swap_pool(server, &end);
    daemon_report_send(server, &end);
}

/* ---- ending clients ---- */

/* Limit of the wait for a terminated client's kernels. No driver can stop one kernel of a shared
 * context, so an endless kernel is abandoned. */
#define TERMINATION_TIMEOUT_NS (10 * NS_PER_SEC)

static bool poll_termination(const struct pending_order *order, bool is_late, int *ret_status)
{
    *ret_status = CUDA_SUCCESS;
    order_for_each (order, session, order->server)
        if (session->phase != SESSION_DONE)
            *ret_status = CUDA_ERROR_LAUNCH_TIMEOUT;
    if (*ret_status != CUDA_SUCCESS && is_late)
        log_with(
            LOG_EVENT(order->pid, CUDA_ERROR_MPS_CLIENT_TERMINATED),
            "Client %d is terminated, but its kernels still run: their resources stay allocated",
            order->pid);
    return *ret_status == CUDA_SUCCESS || is_late;
}

/* Answers once the terminated clients have ended; false when out of resources. */
static bool answer_when_done(struct server *server, const struct server_terminate_client *order)
{
    const struct pending_order termination = {.server = server,
                                              .request = order->header.request,
                                              .pid = order->pid,
                                              .id = order->id,
                                              .deadline = clock_ns() + TERMINATION_TIMEOUT_NS,
                                              .poll = poll_termination};

    return pending_order_start(&termination);
}

static void terminate_clients(struct server *server, const struct server_terminate_client *order)
{
    CUresult status = CUDA_ERROR_INVALID_CONTEXT;

    order_for_each (order, session, server) {
        session_log_event(session, CUDA_ERROR_MPS_CLIENT_TERMINATED,
                          " is terminated by the daemon");
        session_fail(session, CUDA_ERROR_MPS_CLIENT_TERMINATED);
        session_stop(session, CUDA_ERROR_MPS_CLIENT_TERMINATED);
        status = CUDA_SUCCESS;
    }
    if (status != CUDA_SUCCESS || !answer_when_done(server, order))
        daemon_report_result(server, order->header.request, status);
}

static void set_limits(struct server *server, const struct server_set_limits *order)
{
    CUresult status = CUDA_ERROR_INVALID_CONTEXT;
    struct server_limits limits;
    char text[LIMITS_TEXT_MAX];

    order_for_each (order, session, server) {
        session_limits_set(&session->limits, &order->limits);
        joint_memory_follow(session);
        session_kick(session);
        limits = session_limits_get(&session->limits);
        limits_describe(&limits, server->devices.count, text);
        session_log(session, ": limits are now %s", text);
        status = CUDA_SUCCESS;
    }
    daemon_report_result(server, order->header.request, status);
}

/* ---- moves to another lane ---- */

static void move_one(struct server *server, const struct server_move_client *order)
{
    list_for_each (struct session, session, &server->sessions, link) {
        if (session->id != order->id || session->phase != SESSION_SERVING)
            continue;
        if (order->withdrawn)
            session_leave_withdraw(session);
        else
            session_leave_order(session, order);
        return;
    }
    if (!order->withdrawn)
        daemon_report_result(server, order->header.request, CUDA_ERROR_INVALID_CONTEXT);
}

/* ---- another daemon ---- */

/* The old table stays mapped, because threads of sessions may be reading it. */
static void take_claims(struct server *server, int fd)
{
    struct claims *claims = window_claims_open(fd);

    if (!claims)
        return;
    window_claims_copy(claims, server->life->claims);
    server->life->claims = claims;
    joint_memory_use(server, &claims->joint);
    list_for_each (struct session, session, &server->sessions, link) {
        if (session->life->attached && session->window)
            window_claim_set(claims, session->life->hello.token, session->window->base,
                             session->identity.pid);
    }
}

static void answer_resume(struct server *server, uint32_t request)
{
    struct server_resumed resumed;

    daemon_report_ready(server);
    daemon_report_all_clients(server);
    server_message_init(&resumed, SERVER_RESUMED, request);
    resumed.leaving = server->life->leaving;
    list_for_each (struct session, session, &server->sessions, link)
        if (resumed.count < SERVER_CLIENTS_MAX)
            resumed.client[resumed.count++] = session->id;
    daemon_report_send(server, &resumed);
}

/* ---- messages ---- */

static enum hold_kind holds_beside(const struct server_set_timeslice *order)
{
    if (!order->beside_batch)
        return HOLD_NONE;
    return order->batch_has_share ? HOLD_LASTING : HOLD_BRIEF;
}

static void dispatch_message(struct server *server, const union server_any *order, int *fd)
{
    switch (order->header.kind) {
    case SERVER_CLIENT:
        if (*fd >= 0)
            server_take_client(server, &order->client, fd_steal(fd));
        break;
    case SERVER_STATUS:
        answer_status(server, order->header.request);
        break;
    case SERVER_SHUTDOWN:
        server_leave(server, order->shutdown.force);
        break;
    case SERVER_TERMINATE_CLIENT:
        terminate_clients(server, &order->terminate_client);
        break;
    case SERVER_SET_LIMITS:
        set_limits(server, &order->set_limits);
        break;
    case SERVER_MOVE_CLIENT:
        move_one(server, &order->move_client);
        break;
    case SERVER_SUSPEND_CLIENT:
        suspend_order_begin(server, &order->suspend_client, *fd);
        break;
    case SERVER_TRACE:
        if (!order->trace.seconds)
            server_trace_stop(server, order->header.request);
        else if (!server_trace_begin(server, &order->trace, *fd))
            log_line("A trace cannot begin: another one runs, or memory is short");
        break;
    case SERVER_SET_QUOTAS:
        server_quotas_set(&order->set_quotas.quotas);
        break;
    case SERVER_SET_TIMESLICE:
        channel_groups_set_slice(order->set_timeslice.us);
        context_hold_allow(server, holds_beside(&order->set_timeslice));
        break;
    case SERVER_DEPART:
        fault_depart();
        break;
    case SERVER_CLAIMS:
        take_claims(server, *fd);
        break;
    case SERVER_RESUME:
        answer_resume(server, order->header.request);
        break;
    case SERVER_CLIENT_NOTED:
        daemon_report_noted(server, order->client_noted.id);
        break;
    default:
        log_line("The daemon sent a message of unknown kind %u", order->header.kind);
    }
}

static void on_daemon_gone(struct server *server)
{
    log_line("The daemon has closed its connection");
    watch_destroy(steal_pointer(server->life->control_watch));
    next_daemon_await(server);
}

/* The kernel had no descriptor for that of the message, so it is closed. The rest is there. */
static void answer_without_descriptor(struct server *server, const union server_any *order)
{
    const struct server_header *header = &order->header;

    log_line("A message of the daemon (kind %u) came without its descriptor: the limit of open "
             "files is %llu",
             header->kind, (unsigned long long)descriptor_limit());
    if (!server_message_valid(order, header->size))
        return;
    if (header->kind == SERVER_CLIENT)
        daemon_report_client_refused(server, order->client.id, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
                                     "the server has no descriptor left");
    else if (header->request)
        daemon_report_result(server, header->request, CUDA_ERROR_OPERATING_SYSTEM);
}

/* Whether there was a message. */
static bool take_message(struct server *server)
{
    union server_any order;
    _cleanup_fd_ int fd = -1;
    size_t fds = 0;
    order.header.magic = 0;
    ssize_t size = sock_recv(server->life->control_fd, &order, sizeof(order), &fd, 1, &fds, 0);

    if (size == -EAGAIN)
        return false;
    if (size == -EPROTO)
        answer_without_descriptor(server, &order);
    else if (size <= 0)
        on_daemon_gone(server);
    else if (!server_message_valid(&order, (size_t)size))
        log_line("The daemon sent a malformed message (%zd bytes)", size);
    else
        dispatch_message(server, &order, &fd);
    return size > 0 || size == -EPROTO;
}

static void on_daemon_message(void *context, int control_fd)
{
    (void)control_fd;
    take_message(context);
}

void daemon_link_drain(struct server *server)
{
    while (server->life->control_watch && take_message(server))
        ;
}

int daemon_link_start(struct server *server)
{
    server->life->control_watch = loop_watch_readable(server->life->loop, server->life->control_fd,
                                                      on_daemon_message, server);
    return server->life->control_watch ? 0 : -ENOMEM;
}
