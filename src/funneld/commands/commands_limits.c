/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that set and show limits. As in MPS, defaults concern servers that are started later,
 * the limits of a server its later clients, and the default priority all later clients. */
#include <string.h>

#include "client_limits.h"
#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "server_process.h"

/* With one decimal as NVIDIA's, and a second one only where it is not 0. */
static void print_percentage(struct console *console, const struct limits *limits)
{
    unsigned whole = limits->sm_centipercent / 100, hundredths = limits->sm_centipercent % 100;

    if (hundredths % 10)
        console_print(console, "%u.%02u", whole, hundredths);
    else
        console_print(console, "%u.%u", whole, hundredths / 10);
    console_done(console, COMMAND_OK);
}

/* All lanes of a service have the same limits. */
static void save_limits(const struct server_process *server)
{
    list_for_each (struct server_process, lane, &server->daemon->servers, link) {
        if (lane->role != SERVER_SERVING || strcmp(lane->service, server->service))
            continue;
        lane->limits = server->limits;
        server_file_save(lane);
    }
}

void run_get_default_active_thread_percentage(struct console *console,
                                              const struct grammar_values *values)
{
    print_percentage(console, &console->daemon->defaults);
}

void run_set_default_active_thread_percentage(struct console *console,
                                              const struct grammar_values *values)
{
    console->daemon->defaults.sm_centipercent = values->centipercent;
    print_percentage(console, &console->daemon->defaults);
}

void run_get_active_thread_percentage(struct console *console, const struct grammar_values *values)
{
    struct server_process *server = command_server(console, values);

    if (server)
        print_percentage(console, &server->limits);
}

void run_set_active_thread_percentage(struct console *console, const struct grammar_values *values)
{
    struct server_process *server = command_server(console, values);

    if (!server)
        return;
    server->limits.sm_centipercent = values->centipercent;
    save_limits(server);
    print_percentage(console, &server->limits);
}

static void print_memory(struct console *console, const struct limits *limits, const char *device)
{
    const char *text = limits_memory_text(limits, device);

    if (text)
        console_print(console, "%s", text);
    console_done(console, COMMAND_OK);
}

static void set_memory(struct console *console, struct limits *limits,
                       const struct grammar_values *values)
{
    int error = limits_set_memory(limits, values->device, values->memory, values->memory_text);

    if (error)
        console_print(console, "No more than %d devices can have limits", DEVICE_LIMITS_MAX);
    console_done(console, error != 0);
}

void run_get_default_device_pinned_mem_limit(struct console *console,
                                             const struct grammar_values *values)
{
    print_memory(console, &console->daemon->defaults, values->device);
}

void run_set_default_device_pinned_mem_limit(struct console *console,
                                             const struct grammar_values *values)
{
    set_memory(console, &console->daemon->defaults, values);
}

void run_get_device_pinned_mem_limit(struct console *console, const struct grammar_values *values)
{
    struct server_process *server = command_server(console, values);

    if (server)
        print_memory(console, &server->limits, values->device);
}

void run_set_device_pinned_mem_limit(struct console *console, const struct grammar_values *values)
{
    struct server_process *server = command_server(console, values);

    if (!server)
        return;
    set_memory(console, &server->limits, values);
    save_limits(server);
}

void run_get_default_client_priority(struct console *console, const struct grammar_values *values)
{
    console_print(console, "%u", console->daemon->defaults.priority);
    console_done(console, COMMAND_OK);
}

void run_set_default_client_priority(struct console *console, const struct grammar_values *values)
{
    console->daemon->defaults.priority = values->priority;
    console_done(console, COMMAND_OK);
}
