/* SPDX-License-Identifier: Apache-2.0 */
/* Commands about servers and the daemon itself: list, state, start, shut down, devices, quit. */
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "daemon_quit.h"
#include "server_process.h"
#include "server_start.h"
#include "service.h"

void run_get_server_list(struct console *console, const struct grammar_values *values)
{
    list_for_each (struct server_process, server, &console->daemon->servers, link)
        if (server->role == SERVER_SERVING && console_may_manage(console, server))
            console_print(console, "%d", (int)server->pid);
    console_done(console, COMMAND_OK);
}

void run_get_server_status(struct console *console, const struct grammar_values *values)
{
    struct server_process *server = command_server(console, values);

    if (!server)
        return;
    console_print(console, "%s", server_process_state_name(server));
    console_done(console, COMMAND_OK);
}

/* A user who may manage a server may start it. The daemon of a user starts only that user's. */
static bool may_start(struct console *console, uid_t uid)
{
    const struct daemon *daemon = console->daemon;

    if (!console_is_operator(console) && (console->uid != uid || daemon->multiuser))
        console_print(console, "Permission denied: user %u may not start a server for user %u",
                      (unsigned)console->uid, (unsigned)uid);
    else if (daemon->quitting)
        console_print(console, "The daemon is quitting");
    else if (daemon->uid != 0 && daemon->uid != uid)
        console_print(console, "This daemon runs as user %u and cannot start a server for user %u",
                      (unsigned)daemon->uid, (unsigned)uid);
    else
        return true;
    return false;
}

static void on_started(void *context, const struct server_process *server, bool ready)
{
    struct console *console = context;

    if (!ready)
        console_print(console, "Failed to start a server for user %u: %s", (unsigned)server->uid,
                      server->failure_text);
    console_done(console, ready ? COMMAND_OK : COMMAND_FAILED);
}

/* Answered when the server is ready, or has failed to start. */
static void start_server(struct console *console, uid_t uid)
{
    struct server_route route = service_route_of_user(console->daemon, uid, (gid_t)uid, NULL);
    struct server_process *server = server_process_find(console->daemon, route.name);
    int error = server ? 0 : server_process_start(console->daemon, &route, &server);

    if (error) {
        console_print(console, "Failed to start a server for user %u: %s", (unsigned)uid,
                      server_process_start_error(error));
        console_done(console, COMMAND_FAILED);
    } else if (server->state == SERVER_INITIALIZING && !server->starter.done) {
        server->starter = (struct start_waiter){on_started, console};
    } else {
        console_print(console, "Server %d already exists for user %u", (int)server->pid,
                      (unsigned)uid);
        console_done(console, COMMAND_OK);
    }
}

void run_start_server(struct console *console, const struct grammar_values *values)
{
    const struct daemon *daemon = console->daemon;
    uid_t uid = daemon->multiuser ? daemon->server_uid : values->uid;

    if (values->mlopart)
        console_print(console, "MLOPart devices are not supported; -mlopart is ignored");
    if (may_start(console, uid))
        start_server(console, uid);
    else
        console_done(console, COMMAND_REJECTED);
}

void run_shutdown_server(struct console *console, const struct grammar_values *values)
{
    struct server_process *server = command_server(console, values);

    if (!server)
        return;
    server_process_stop(server, values->force);
    console_done(console, COMMAND_OK);
}

static void print_device(struct console *console, const struct server_process *server,
                         unsigned ordinal, bool csv)
{
    const struct server_device *device = &server->ready.devices[ordinal];
    char uuid[GPU_UUID_TEXT];
    const char *format =
        csv ? "%u,%d,%.16s,%s,%s,%u,%u,%s" : "%-8u %-8d %-16.16s %-40s %-32s %-9u %-12u %s";

    device_uuid_text(device, uuid);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    console_print(console, format, ordinal, (int)server->pid, device->pci_bus_id, uuid,
                  device->name, device->sm_count, static_partitions_chunks(device, false), "-");
#pragma GCC diagnostic pop
}

void run_device_query(struct console *console, const struct grammar_values *values)
{
    struct server_process *only = NULL;

    if (grammar_given(values, GRAMMAR_SERVER)) {
        only = command_server(console, values);
        if (!only)
            return;
    }
    if (values->csv)
        console_print(console,
                      "Ordinal,Server,PCI ID,Device UUID,Name,Total SMs,Total Chunks,Attributes");
    else
        console_print(console, "%-8s %-8s %-16s %-40s %-32s %-9s %-12s %s", "Ordinal", "Server",
                      "PCI ID", "Device UUID", "Name", "Total SMs", "Total Chunks", "Attributes");
    list_for_each (struct server_process, server, &console->daemon->servers, link)
        for (unsigned i = 0; i < server->ready.device_count; i++)
            if (server->role == SERVER_SERVING && (!only || only == server) &&
                console_may_manage(console, server))
                print_device(console, server, i, values->csv);
    console_done(console, COMMAND_OK);
}

/* Answered by the program that the daemon becomes. */
void run_reload(struct console *console, const struct grammar_values *values)
{
    console->daemon->events->reload(console->daemon, console);
}

/* Answered when the last server has ended. */
void run_quit(struct console *console, const struct grammar_values *values)
{
    bool limited = grammar_given(values, GRAMMAR_SECONDS);

    daemon_quit(console->daemon, limited ? (int)values->seconds : -1, console);
}
