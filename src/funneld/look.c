/* SPDX-License-Identifier: Apache-2.0 */
/* See look.h. */
#include "look.h"

#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "console.h"
#include "funneld_server.h"
#include "service.h"

bool look_is_meant(const struct look *look, const char *server)
{
    return !*look->values.name || !strcmp(look->values.name, server);
}

bool look_may_see(const struct look *look, const struct service *service)
{
    const struct console *console = look->console;

    return look_is_meant(look, service->name) &&
           (console_is_operator(console) ||
            (!console->daemon->multiuser && console->uid == service->uid));
}

const char *look_status(unsigned state, bool stopping)
{
    static const char *const names[] = {"Initializing", "Ready", "Fault"};

    return stopping ? "Stopping" : names[state <= 2 ? state : 2];
}

static void print_line(void *console, const char *text)
{
    console_print(console, "%s", text);
}

/* What the table is about has to be there when it was named. */
static int check_found(const struct look *look, const struct survey *survey)
{
    const struct grammar_values *values = &look->values;
    unsigned meant = 0;

    for (unsigned i = 0; i < survey->part_count; i++)
        meant += look_is_meant(look, survey->parts[i].server.name);
    list_for_each(struct service, service, &look->console->daemon->services, link) meant +=
        look_may_see(look, service);
    if (*values->name && !meant)
        console_print(look->console, "Server '%s' not found", values->name);
    else if (grammar_given(values, GRAMMAR_CLIENT) && !look->table.rows)
        console_print(look->console, "Client %d not found", (int)values->client);
    else if (*values->space && !look->table.rows)
        console_print(look->console, "Namespace '%s' not found", values->space);
    else if (look->table.incomplete)
        console_print(look->console, "Out of memory");
    else
        return COMMAND_OK;
    return COMMAND_FAILED;
}

static int print_field(const struct look *look)
{
    int column = table_column(&look->table, look->values.field);

    if (column < 0) {
        console_print(look->console, "There is no field '%s'", look->values.field);
        return COMMAND_REJECTED;
    }
    console_print(look->console, "%s", look->table.cells[column]);
    return COMMAND_OK;
}

static void on_surveyed(struct survey *survey, void *context)
{
    struct look *look = context;
    struct console *console = look->console;
    int status;

    for (unsigned i = 0; i < survey->part_count; i++)
        if (look->subject->fill && look_is_meant(look, survey->parts[i].server.name))
            look->subject->fill(look, &survey->parts[i]);
    if (look->subject->complete)
        look->subject->complete(look);
    status = check_found(look, survey);
    if (status == COMMAND_OK && *look->values.field)
        status = print_field(look);
    else if (status == COMMAND_OK)
        table_print(&look->table, look->subject->listed, look->values.format, print_line, console);
    table_fini(&look->table);
    free(look);
    console_done(console, status);
}

bool look_may_ask(const struct server *server, const void *console)
{
    return console_may_touch(console, server);
}

void look_show(struct console *console, const struct grammar_values *values,
               const struct look_subject *subject)
{
    struct look *look = calloc(1, sizeof(*look));

    if (look) {
        look->console = console;
        look->values = *values;
        look->subject = subject;
        table_init(&look->table, subject->titles);
        if (!survey_start(console->daemon, look_may_ask, console, on_surveyed, look))
            return;
        free(look);
    }
    console_print(console, "Out of memory");
    console_done(console, COMMAND_FAILED);
}
