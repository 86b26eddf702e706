/* SPDX-License-Identifier: Apache-2.0 */
/* See list_view.h. */
#include "list_view.h"

#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "console.h"
#include "lane_name.h"
#include "server_process.h"
#include "service.h"

bool list_view_selects(const struct list_view *view, const char *server)
{
    return !*view->values.name || lane_name_is_of(server, view->values.name);
}

bool list_view_may_show(const struct list_view *view, const struct service *service)
{
    return list_view_selects(view, service->name) &&
           console_may_manage_service(view->console, service);
}

const char *server_status_name(unsigned state, bool stopping)
{
    static const char *const names[] = {"Initializing", "Ready", "Fault"};

    return stopping ? "Stopping" : names[state <= 2 ? state : 2];
}

static void print_line(void *console, const char *text)
{
    console_print(console, "%s", text);
}

/* A server, client or namespace that was named has to exist. */
static int check_found(const struct list_view *view, const struct status_query *query)
{
    const struct grammar_values *values = &view->values;
    unsigned selected = 0;

    for (unsigned i = 0; i < query->report_count; i++)
        selected += list_view_selects(view, query->reports[i].server.name);
    list_for_each (struct service, service, &view->console->daemon->services, link)
        selected += list_view_may_show(view, service);
    if (*values->name && !selected)
        console_print(view->console, "Server '%s' not found", values->name);
    else if (grammar_given(values, GRAMMAR_CLIENT) && !view->table.rows)
        console_print(view->console, "Client %d not found", (int)values->client);
    else if (*values->space && !view->table.rows)
        console_print(view->console, "Namespace '%s' not found", values->space);
    else if (view->table.incomplete)
        console_print(view->console, "Out of memory");
    else
        return COMMAND_OK;
    return COMMAND_FAILED;
}

static int print_field(const struct list_view *view)
{
    int column = table_column(&view->table, view->values.field);

    if (column < 0) {
        console_print(view->console, "There is no field '%s'", view->values.field);
        return COMMAND_REJECTED;
    }
    console_print(view->console, "%s", view->table.cells[column]);
    return COMMAND_OK;
}

static void on_status(struct status_query *query, void *context)
{
    struct list_view *view = context;
    struct console *console = view->console;
    int status;

    for (unsigned i = 0; i < query->report_count; i++)
        if (view->type->fill && list_view_selects(view, query->reports[i].server.name))
            view->type->fill(view, &query->reports[i]);
    if (view->type->complete)
        view->type->complete(view);
    status = check_found(view, query);
    if (status == COMMAND_OK && *view->values.field)
        status = print_field(view);
    else if (status == COMMAND_OK)
        table_print(&view->table, view->type->listed, view->values.format, print_line, console);
    table_fini(&view->table);
    free(view);
    console_done(console, status);
}

bool list_view_may_query(const struct server_process *server, const void *console)
{
    return console_may_see(console, server);
}

void list_view_show(struct console *console, const struct grammar_values *values,
                    const struct list_view_type *type)
{
    struct list_view *view = calloc(1, sizeof(*view));

    if (view) {
        view->console = console;
        view->values = *values;
        view->type = type;
        table_init(&view->table, type->titles);
        if (!status_query_start(console->daemon, list_view_may_query, console, on_status, view))
            return;
        free(view);
    }
    console_print(console, "Out of memory");
    console_done(console, COMMAND_FAILED);
}
