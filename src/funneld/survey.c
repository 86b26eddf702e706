/* SPDX-License-Identifier: Apache-2.0 */
/* See survey.h. */
#include "survey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "funneld_server.h"
#include "service.h"
#include "text.h"

#define SURVEY_TIMEOUT_S 5

static void survey_free(struct survey *survey)
{
    for (unsigned i = 0; i < survey->part_count; i++)
        free(survey->parts[i].clients);
    free(survey->parts);
    free(survey);
}

static void finish_one(struct survey *survey)
{
    if (--survey->outstanding)
        return;
    survey->done(survey, survey->context);
    survey_free(survey);
}

/* A row that finds no memory is left out; the count in the totals tells. */
static void on_row(void *context, const struct server_status_row *row)
{
    struct survey_part *part = context;

    if (part->client_count == part->capacity) {
        unsigned capacity = part->capacity ? part->capacity * 2 : 16;
        struct server_status_row *grown = reallocarray(part->clients, capacity, sizeof(*grown));

        if (!grown)
            return;
        part->clients = grown;
        part->capacity = capacity;
    }
    part->clients[part->client_count++] = *row;
}

static void on_end(void *context, int status, const struct server_status_end *totals)
{
    struct survey_part *part = context;

    if (totals) {
        part->server.responding = 1;
        part->server.client_count = totals->client_count;
        memcpy(part->server.memory_free, totals->memory_free, sizeof(totals->memory_free));
    }
    finish_one(part->survey);
}

static void describe(const struct server *server, struct command_server *description)
{
    *description = (struct command_server){
        .header = {COMMAND_MAGIC, COMMAND_SERVER},
        .pid = server->pid,
        .uid = server->uid,
        .since = server->since,
        .state = server->state,
        .stopping = server->stopping,
        .driver = server->ready.driver,
        .driver_version = server->ready.driver_version,
        .device_count = server->ready.device_count,
        .max_clients = server->ready.max_clients,
        .sm_centipercent = server->limits.sm_centipercent,
        .priority = server->limits.priority,
    };
    text_copy(description->name, sizeof(description->name), server->name);
    text_copy(description->directory, sizeof(description->directory),
              service_directory(server->daemon, server->name));
    memcpy(description->devices, server->ready.devices, sizeof(description->devices));
}

static void ask(struct survey_part *part, struct server *server)
{
    struct answer answer = {on_row, on_end, part};
    struct server_status message;

    if (server->state == SERVER_INITIALIZING)
        finish_one(part->survey);
    else
        server_ask(server, &message, SERVER_STATUS, SURVEY_TIMEOUT_S, &answer);
}

static struct survey *survey_create(unsigned parts)
{
    struct survey *survey = calloc(1, sizeof(*survey));

    if (!survey)
        return NULL;
    survey->parts = calloc(parts ? parts : 1, sizeof(*survey->parts));
    if (survey->parts)
        return survey;
    free(survey);
    return NULL;
}

static unsigned count_servers(const struct daemon *daemon)
{
    unsigned count = 0;

    list_for_each(struct server, server, &daemon->servers, link) count++;
    return count;
}

int survey_start(struct daemon *daemon, bool (*wanted)(const struct server *, const void *),
                 const void *selector, void (*done)(struct survey *, void *), void *context)
{
    struct survey *survey = survey_create(count_servers(daemon));

    if (!survey)
        return -ENOMEM;
    survey->done = done;
    survey->context = context;
    survey->outstanding = 1; /* our own, so that it cannot end while servers are being asked */
    list_for_each(struct server, server, &daemon->servers, link)
    {
        struct survey_part *part = &survey->parts[survey->part_count];

        if (wanted && !wanted(server, selector))
            continue;
        survey->part_count++;
        survey->outstanding++;
        part->survey = survey;
        describe(server, &part->server);
        ask(part, server);
    }
    finish_one(survey);
    return 0;
}
