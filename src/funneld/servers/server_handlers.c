/* SPDX-License-Identifier: Apache-2.0 */
/* See server_handlers.h. */
#include "server_handlers.h"

#include <signal.h>
#include <string.h>

#include "client_record.h"
#include "departed.h"
#include "fault_drain.h"
#include "funnel_errors.h"
#include "journal.h"
#include "lane_join.h"
#include "lane_move.h"
#include "lane_name.h"
#include "lane_watch.h"
#include "pending_request.h"
#include "quarantine.h"
#include "replacement.h"
#include "server_process.h"
#include "service.h"
#include "spare_lane.h"
#include "standby.h"
#include "takeover.h"
#include "text.h"
#include "timeslice.h"
#include "usage_totals.h"

/* A server that has faulted ends when the next one is ready, and that has 120 s to start. */
#define KEPT_TIMEOUT_S 130

static void begin_serving(struct server_process *server)
{
    service_server_ready(server);
    timeslices_divide(server->daemon);
    journal("NEW SERVER %d: Ready", (int)server->pid);
    server_process_answer_starter(server, true);
    if (!server->stopping)
        server->daemon->events->server_ready(server);
    replacement_end_old(server);
    standby_begin(server);
    lane_moves_follow(server->daemon);
}

static void activate(struct server_process *server)
{
    server->state = SERVER_ACTIVE;
    if (!server->stopping)
        evtimer_del(server->deadline);
    heartbeat_begin(server);
    server_process_send_quotas(server);
    if (server->role == SERVER_STANDBY)
        journal("Standby server %d: Ready", (int)server->pid);
    else if (server->role == SERVER_REPLACED)
        server_process_stop(server, false);
    else
        begin_serving(server);
}

/* A server says once what its devices are: the figures of its clients are measured by them. */
static void on_ready(struct server_process *server, const struct server_ready *ready)
{
    if (server->state != SERVER_INITIALIZING)
        return;
    server->ready = *ready;
    if (server->ready.device_count > SERVER_MAX_DEVICES)
        server->ready.device_count = SERVER_MAX_DEVICES;
    for (unsigned i = 0; i < server->ready.device_count; i++)
        server->ready.devices[i].name[sizeof(ready->devices[i].name) - 1] = '\0';
    server_file_save_devices(server);
    if (!server->resuming)
        activate(server);
}

static void on_resumed(struct server_process *server, const struct server_resumed *resumed)
{
    if (!server->resuming || !server->ready.device_count)
        return;
    takeover_resumed(server, resumed);
    activate(server);
}

static void on_failed(struct server_process *server, const struct server_failed *failed)
{
    server->failure = failed->status ? failed->status : FUNNEL_ERROR_MPS_CONNECTION_FAILED;
    memcpy(server->failure_text, failed->text, sizeof(server->failure_text));
    server->failure_text[sizeof(server->failure_text) - 1] = '\0';
    journal("Server %d failed to start with status %d: %s", (int)server->pid, server->failure,
            server->failure_text);
}

/* NULL, and a line the first time, when the server has not been given such a client. */
static struct client_record *find_client(struct server_process *server, uint32_t id)
{
    struct client_record *record = client_record_find(server, id);

    /* The server reports again the clients that the dead daemon has accounted for. */
    if (!record && server->resuming)
        return NULL;
    if (!record && !server->has_invented)
        journal(
            "Server %d speaks of a client with id %u, which the daemon has not given to it; what "
            "it says of such clients is ignored",
            (int)server->pid, id);
    server->has_invented |= !record;
    return record;
}

/* A lost context cannot be repaired: the server ends. New clients are refused until its clients
 * have ended, too (fault_drain.h). */
static void on_fault(struct server_process *server, const struct server_fault *fault)
{
    const struct client_record *record = fault->id ? find_client(server, fault->id) : NULL;

    if (server->state != SERVER_ACTIVE)
        return;
    journal_with(record ? LOG_EVENT(record->identity.pid, fault->status) : NULL,
                 "Server %d: fatal GPU error %d on device %u: %.*s", (int)server->pid,
                 fault->status, fault->device, (int)sizeof(fault->text), fault->text);
    if (record)
        quarantine_note(server->daemon, &record->identity, &record->program);
    usage_totals()->faults++;
    server->state = SERVER_FAULTED;
    server->stopping = true;
    fault_drain_begin(server, record ? &record->identity : NULL);
    server_process_lost(server);
    if (replacement_is_coming(server))
        server_process_set_deadline(server, KEPT_TIMEOUT_S);
    else
        replacement_end_old(server);
}

static void on_attached(struct server_process *server,
                        const struct server_client_attached *attached)
{
    struct client_record *record = find_client(server, attached->id);

    if (!record || record->attached)
        return;
    record->attached = true;
    record->window_base = attached->window_base;
    client_record_save(record);
    departed_arrive(server->daemon, record->token);
    journal_with(LOG_ABOUT(record->identity.pid), "Client %d attached to server %d with id %u",
                 record->identity.pid, (int)server->pid, attached->id);
}

static void on_usage(struct server_process *server, const struct server_client_gone *usage)
{
    struct client_record *record = find_client(server, usage->id);

    if (!record)
        return;
    client_record_note(record, usage);
    lane_watch_note(record);
}

/* The lines that "memacct set audit_log=true" asks for. */
static void audit(const struct server_process *server, pid_t pid,
                  const struct server_client_gone *gone)
{
    for (unsigned i = 0; i < server->ready.device_count; i++)
        if (gone->memory_peak[i])
            journal_with(
                LOG_ABOUT(pid),
                "Audit: client %d (id %u) of server %s held at most %llu bytes of device %u",
                (int)pid, gone->id, server->name, (unsigned long long)gone->memory_peak[i], i);
    if (gone->memory_refused)
        journal_with(LOG_EVENT(pid, 0),
                     "Audit: client %d (id %u) of server %s met its memory limit %llu times",
                     (int)pid, gone->id, server->name, (unsigned long long)gone->memory_refused);
}

static void log_gone(const struct server_process *server, pid_t pid,
                     const struct server_client_gone *gone)
{
    if (gone->status)
        journal_with(LOG_EVENT(pid, gone->status),
                     "Client %d (id %u) of server %d ended with status %d%s%.*s", (int)pid,
                     gone->id, (int)server->pid, gone->status, *gone->text ? ": " : "",
                     (int)sizeof(gone->text), gone->text);
    else
        journal_with(LOG_ABOUT(pid), "Client %d (id %u) of server %d has left", (int)pid, gone->id,
                     (int)server->pid);
}

/* The server may forget it: it is in the journal, and no record is left. */
static void send_noted(struct server_process *server, uint32_t id)
{
    struct server_client_noted noted;

    server_message_init(&noted, SERVER_CLIENT_NOTED, 0);
    noted.id = id;
    connection_send(&server->connection, &noted, sizeof(noted), -1);
}

/* The end of a server does not wait for kernels that never end. A lane ends after its last client,
 * and such a kernel would take time from the other lanes until the next one came. */
static void end_if_abandoned(struct server_process *server)
{
    if (server->stopping || !lane_name_is_main(server->name))
        server_process_kill_abandoned(server);
}

/* One that has moved has not ended yet. */
static void note_good_end(struct server_process *server, const struct client_record *record,
                          const struct server_client_gone *gone)
{
    if (gone->status || !record->attached || server->state != SERVER_ACTIVE)
        return;
    known_programs_add(&server->served, &record->program);
    if (!record->has_moved)
        known_programs_add(&server->daemon->known, &record->program);
}

static void note_gone(struct server_process *server, const struct server_client_gone *gone)
{
    struct client_record *record = find_client(server, gone->id);

    if (!record)
        return;
    pid_t pid = record->identity.pid;

    if (server->daemon->audits)
        audit(server, pid, gone);
    note_good_end(server, record, gone);
    client_record_end(record, gone);
    end_if_abandoned(server);
    log_gone(server, pid, gone);
}

static void on_gone(struct server_process *server, const struct server_client_gone *gone)
{
    note_gone(server, gone);
    /* One that has faulted remembers nothing any more, and a message would end its wait for the
     * next server. */
    if (server->state != SERVER_FAULTED)
        send_noted(server, gone->id);
}

static void on_row(struct server_process *server, struct server_status_row *row)
{
    struct client_record *record = find_client(server, row->id);

    if (record && client_record_complete(record, row))
        pending_request_row(server, row);
}

static void on_abandoned(struct server_process *server, const struct server_abandoned *abandoned)
{
    unsigned clients = abandoned->clients;

    server->heap_used = abandoned->heap_used;
    if (clients > server->abandoned)
        journal("Server %d: %u client%s ended, but a kernel goes on", (int)server->pid, clients,
                clients == 1 ? " has" : "s have");
    server->abandoned = clients;
    end_if_abandoned(server);
}

static void on_move_wish(struct server_process *server, const struct server_move_wish *wish)
{
    struct client_record *record = find_client(server, wish->id);

    if (record && wish->server)
        lane_join_ask(record, (pid_t)wish->server);
    else if (record)
        spare_lane_ask(record);
}

static void clean_ready(struct server_ready *ready)
{
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++) {
        text_make_printable_array(ready->devices[i].name, sizeof(ready->devices[i].name));
        text_make_printable_array(ready->devices[i].pci_bus_id,
                                  sizeof(ready->devices[i].pci_bus_id));
    }
}

static void clean_row(struct server_status_row *row)
{
    text_make_printable_array(row->usage.stall_cause, sizeof(row->usage.stall_cause));
    text_make_printable_array(row->call, sizeof(row->call));
}

/* A server is a process of its user. What it says ends in logs, and on the terminals of others. */
static void clean(union server_any *any)
{
    if (any->header.kind == SERVER_READY)
        clean_ready(&any->ready);
    else if (any->header.kind == SERVER_STATUS_ROW)
        clean_row(&any->status_row);
    else if (any->header.kind == SERVER_HEARTBEAT)
        text_make_printable_array(any->heartbeat.text, sizeof(any->heartbeat.text));
    else if (any->header.kind == SERVER_FAILED)
        text_make_printable_array(any->failed.text, sizeof(any->failed.text));
}

static void dispatch_message(void *owner, const void *data, size_t size)
{
    struct server_process *server = owner;
    union server_any message, *any = &message;

    if (!server_message_valid(data, size)) {
        journal(
            "Server %d sent a message of %zu bytes that the daemon does not understand; killing it",
            (int)server->pid, size);
        server_process_signal(server, SIGKILL);
        return;
    }
    memcpy(any, data, size);
    clean(any);
    switch (any->header.kind) {
    case SERVER_READY:
        on_ready(server, &any->ready);
        break;
    case SERVER_FAILED:
        on_failed(server, &any->failed);
        break;
    case SERVER_CLIENT_ATTACHED:
        on_attached(server, &any->client_attached);
        break;
    case SERVER_CLIENT_GONE:
        on_gone(server, &any->client_gone);
        break;
    case SERVER_CLIENT_USAGE:
        on_usage(server, &any->client_gone);
        break;
    case SERVER_STATUS_ROW:
        on_row(server, &any->status_row);
        break;
    case SERVER_STATUS_END:
        pending_request_answered(server, any->header.request, 0, &any->status_end);
        break;
    case SERVER_RESULT:
        pending_request_answered(server, any->header.request, any->result.status, NULL);
        break;
    case SERVER_FAULT:
        on_fault(server, &any->fault);
        break;
    case SERVER_ABANDONED:
        on_abandoned(server, &any->abandoned);
        break;
    case SERVER_HEARTBEAT:
        heartbeat_received(server, &any->heartbeat);
        break;
    case SERVER_MOVE_WISH:
        on_move_wish(server, &any->move_wish);
        break;
    case SERVER_RESUMED:
        on_resumed(server, &any->resumed);
        break;
    }
}

static void on_message(void *owner, const void *data, size_t size)
{
    uid_t before = journal_account(((struct server_process *)owner)->owner);

    dispatch_message(owner, data, size);
    journal_account(before);
}

/* Either the server is about to exit, or it has failed. The end of its process decides. */
static void on_closed(void *owner)
{
    struct server_process *server = owner;

    connection_close(&server->connection);
    server_process_set_stop_deadline(server);
    server_process_lost(server);
}

const struct connection_handlers server_connection_handlers = {on_message, on_closed};
