/* SPDX-License-Identifier: Apache-2.0 */
/* See daemon_report.h. */
#include "daemon_report.h"

#include <stdlib.h>
#include <string.h>

#include "accounting.h"
#include "fd.h"
#include "log.h"
#include "memory.h"
#include "partition.h"
#include "session_life.h"
#include "sock.h"
#include "text.h"
#include "window.h"

void daemon_report_send(const struct server *server, const void *message)
{
    const struct server_header *header = message;

    if (server->life->control_fd < 0 || server->life->alone)
        return;
    int error = sock_send(server->life->control_fd, message, header->size, NULL, 0);
    if (error)
        log_line("A message to the daemon cannot be sent: %s", strerror(-error));
}

static void describe_device(const struct device *device, struct server_device *ret_device)
{
    const struct device_record *record = &device->record;

    text_copy(ret_device->name, sizeof(ret_device->name), record->name);
    memcpy(ret_device->uuid, record->uuid, sizeof(ret_device->uuid));
    text_copy(ret_device->pci_bus_id, sizeof(ret_device->pci_bus_id), record->pci_bus_id);
    ret_device->memory_total = record->total_memory;
    ret_device->sm_count = (uint32_t)record->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    ret_device->compute_major =
        (uint32_t)record->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
    ret_device->compute_minor =
        (uint32_t)record->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
}

void daemon_report_ready(struct server *server)
{
    struct server_ready ready;

    server_message_init(&ready, SERVER_READY, 0);
    ready.driver =
        server->life->driver_kind == DRIVER_SOFT ? SERVER_DRIVER_SOFT : SERVER_DRIVER_CUDA;
    ready.driver_version = (uint32_t)server->devices.driver_version;
    ready.device_count = server->devices.count;
    ready.max_clients = server->life->clients_max;
    for (unsigned i = 0; i < server->devices.count; i++) {
        describe_device(&server->devices.device[i], &ready.devices[i]);
        ready.devices[i].own_mib = (uint32_t)(server->devices.own_memory[i] >> 20);
        ready.devices[i].clustered_sms = partitions_clustered_sms(&server->partitions[i]);
    }
    daemon_report_send(server, &ready);
}

void daemon_report_failed(int control_fd, CUresult status, const char *text)
{
    struct server_failed failed;

    server_message_init(&failed, SERVER_FAILED, 0);
    failed.status = (int32_t)status;
    text_copy(failed.text, sizeof(failed.text), text);
    if (control_fd >= 0)
        sock_send(control_fd, &failed, sizeof(failed), NULL, 0);
}

static void send_attached(const struct server *server, uint32_t id, uint64_t window_base)
{
    struct server_client_attached attached;

    server_message_init(&attached, SERVER_CLIENT_ATTACHED, 0);
    attached.id = id;
    attached.window_base = window_base;
    daemon_report_send(server, &attached);
}

void daemon_report_client_attached(struct server *server, const struct session *session)
{
    send_attached(server, session->id, session->window ? session->window->base : 0);
}

static void describe_client(const struct server *server, const struct session *session,
                            enum server_message kind, CUresult status,
                            struct server_client_gone *ret_gone)
{
    uint64_t used;

    server_message_init(ret_gone, kind, 0);
    ret_gone->id = session->id;
    ret_gone->status = (int32_t)status;
    ret_gone->memory_refused = memory_refusals(session);
    accounting_usage(session, &ret_gone->usage);
    for (unsigned i = 0; i < server->devices.count; i++)
        memory_usage(session, i, &used, &ret_gone->memory_peak[i]);
}

static void report_client(const struct server *server, const struct session *session,
                          enum server_message kind, CUresult status)
{
    struct server_client_gone gone;

    describe_client(server, session, kind, status, &gone);
    daemon_report_send(server, &gone);
}

/* ---- clients that have gone ---- */

/* A daemon that is killed has not accounted for what it has not read, so a message is kept until
 * the daemon has answered it. There is one for each client at most, as none comes without a daemon.
 */
struct unnoted {
    struct list link; /* in server->life->unnoted_gone */
    bool attached;
    struct server_client_gone gone;
};

static void send_gone(struct server *server, const struct server_client_gone *gone, bool attached)
{
    struct unnoted *unnoted = server->life->keeps_gone ? malloc(sizeof(*unnoted)) : NULL;

    if (unnoted) {
        unnoted->attached = attached;
        unnoted->gone = *gone;
        list_append(&server->life->unnoted_gone, &unnoted->link);
    }
    daemon_report_send(server, gone);
}

void daemon_report_noted(struct server *server, uint32_t id)
{
    list_for_each_safe (struct unnoted, unnoted, &server->life->unnoted_gone, link) {
        if (unnoted->gone.id != id)
            continue;
        list_remove(&unnoted->link);
        free(unnoted);
        return;
    }
}

void daemon_report_client_gone(struct server *server, const struct session *session)
{
    struct server_client_gone gone;

    describe_client(server, session, SERVER_CLIENT_GONE, (CUresult)session->life->end_status,
                    &gone);
    send_gone(server, &gone, session->life->announced);
}

void daemon_report_clients_lost(struct server *server, CUresult status)
{
    list_for_each (struct session, session, &server->sessions, link) {
        if (session->life->announced)
            report_client(server, session, SERVER_CLIENT_GONE, status);
    }
}

/* The daemon already knows the usage of an idle client. */
static bool has_worked(const struct session *session)
{
    struct server_usage usage;
    uint64_t work = 1;

    accounting_usage(session, &usage);
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        work += usage.gpu_ns[i];
    work += usage.launches + usage.copies;
    bool worked = work != session->life->reported_work;
    session->life->reported_work = work;
    return worked;
}

void daemon_report_usage(struct server *server)
{
    list_for_each (struct session, session, &server->sessions, link) {
        if (session->life->announced && has_worked(session))
            report_client(server, session, SERVER_CLIENT_USAGE, CUDA_SUCCESS);
    }
}

void daemon_report_client_refused(struct server *server, uint32_t id, CUresult status,
                                  const char *text)
{
    struct server_client_gone gone;

    server_message_init(&gone, SERVER_CLIENT_GONE, 0);
    gone.id = id;
    gone.status = (int32_t)status;
    text_copy(gone.text, sizeof(gone.text), text);
    send_gone(server, &gone, false);
}

void daemon_report_abandoned(struct server *server)
{
    struct server_abandoned abandoned;

    server_message_init(&abandoned, SERVER_ABANDONED, 0);
    abandoned.clients = server->life->abandoned;
    abandoned.heap_used = server->life->heap_used;
    daemon_report_send(server, &abandoned);
}

void daemon_report_heartbeat(struct server *server, const struct server_heartbeat *heartbeat)
{
    daemon_report_send(server, heartbeat);
}

void daemon_report_result(struct server *server, uint32_t request, int status)
{
    struct server_result result;

    server_message_init(&result, SERVER_RESULT, request);
    result.status = status;
    daemon_report_send(server, &result);
}

void daemon_report_client_stays(struct server *server, uint32_t request, uint32_t obstacle)
{
    daemon_report_result(server, request, (int)obstacle);
}

void daemon_report_move_wish(struct server *server, const struct session *session, uint32_t target)
{
    struct server_move_wish wish;

    server_message_init(&wish, SERVER_MOVE_WISH, 0);
    wish.id = session->id;
    wish.server = target;
    daemon_report_send(server, &wish);
}

void daemon_report_move_ends(struct server *server, const struct session *session)
{
    if (session->life->leave_ordered)
        daemon_report_result(server, session->life->leave_request,
                             session->life->leaves ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
}

void daemon_report_all_clients(struct server *server)
{
    list_for_each (struct unnoted, unnoted, &server->life->unnoted_gone, link) {
        if (unnoted->attached)
            send_attached(server, unnoted->gone.id, 0);
        daemon_report_send(server, &unnoted->gone);
    }
    list_for_each (struct session, session, &server->sessions, link)
        if (session->life->announced)
            daemon_report_client_attached(server, session);
    if (server->life->abandoned || server->life->heap_used)
        daemon_report_abandoned(server);
}
