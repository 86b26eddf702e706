/* SPDX-License-Identifier: Apache-2.0 */
/* See command_check.h. The daemon is trusted with what it does (daemon_trust.h), and not with the
 * memory of the front end or the terminal. It repeats what servers and programs have told it. */
#include "command_check.h"

#include "text.h"

#define MAKE_PRINTABLE(array) text_make_printable_array(array, sizeof(array))

static void clamp_time(int64_t *seconds)
{
    if (*seconds < 0)
        *seconds = 0;
}

static void check_daemon(struct command_daemon *daemon)
{
    MAKE_PRINTABLE(daemon->version);
    MAKE_PRINTABLE(daemon->device);
    MAKE_PRINTABLE(daemon->log_directory);
    clamp_time(&daemon->since);
}

static void check_devices(struct command_server *server)
{
    if (server->device_count > SERVER_MAX_DEVICES)
        server->device_count = SERVER_MAX_DEVICES;
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++) {
        MAKE_PRINTABLE(server->devices[i].name);
        MAKE_PRINTABLE(server->devices[i].pci_bus_id);
        if (server->memory_free[i] > server->devices[i].memory_total)
            server->memory_free[i] = server->devices[i].memory_total;
        sensors_clean(&server->sensors[i]);
    }
}

static void check_server(struct command_server *server)
{
    MAKE_PRINTABLE(server->name);
    MAKE_PRINTABLE(server->lane);
    MAKE_PRINTABLE(server->directory);
    MAKE_PRINTABLE(server->stall);
    MAKE_PRINTABLE(server->code_cache.path);
    clamp_time(&server->since);
    check_devices(server);
}

static void check_client(struct server_status_row *row)
{
    MAKE_PRINTABLE(row->identity.command);
    MAKE_PRINTABLE(row->identity.group);
    MAKE_PRINTABLE(row->identity.container);
    MAKE_PRINTABLE(row->identity.space);
    MAKE_PRINTABLE(row->usage.stall_cause);
    MAKE_PRINTABLE(row->call);
    clamp_time(&row->identity.since);
}

static void check_limit(struct command_limit *limit)
{
    MAKE_PRINTABLE(limit->name);
    MAKE_PRINTABLE(limit->space);
    MAKE_PRINTABLE(limit->device);
    MAKE_PRINTABLE(limit->joint_device);
    if (limit->scope > COMMAND_SCOPE_GROUP)
        limit->scope = COMMAND_SCOPE_DAEMON;
}

static void check_quota(struct command_quota *quota)
{
    MAKE_PRINTABLE(quota->name);
    MAKE_PRINTABLE(quota->owner);
}

void command_make_safe(union command_any *message)
{
    switch (message->header.kind) {
    case COMMAND_OUTPUT:
        text_make_printable(message->text.text);
        break;
    case COMMAND_DAEMON:
        check_daemon(&message->daemon);
        break;
    case COMMAND_SERVER:
        check_server(&message->server);
        break;
    case COMMAND_CLIENT:
        check_client(&message->client.row);
        break;
    case COMMAND_LIMIT:
        check_limit(&message->limit);
        break;
    case COMMAND_QUOTA:
        check_quota(&message->quota);
        break;
    case COMMAND_TRACE:
        MAKE_PRINTABLE(message->trace.name);
        break;
    }
}
