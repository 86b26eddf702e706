/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit: changes the limits of clients that run. It asks the servers who their clients are, and
 * tells them the new limits of those that are meant; each is answered by a line.
 */
#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "funneld_server.h"
#include "survey.h"
#include "text.h"

#define LIMIT_TIMEOUT_S 10

struct limiting {
    struct console *console;
    struct grammar_values values;
    struct limit_order order;
    unsigned outstanding; /* answers, and our own hand */
    unsigned changed;
    int status;
};

struct one_client {
    struct limiting *limiting;
    pid_t pid;
    struct server_limits limits;
};

static void finish_one(struct limiting *limiting)
{
    bool lasting = grammar_given(&limiting->values, GRAMMAR_UID) ||
                   grammar_given(&limiting->values, GRAMMAR_GROUP);

    if (--limiting->outstanding)
        return;
    if (limiting->changed == 0 && limiting->status == COMMAND_OK && !lasting) {
        console_print(limiting->console, "There is no such client");
        limiting->status = COMMAND_FAILED;
    }
    console_done(limiting->console, limiting->status);
    free(limiting);
}

static void print_limits(struct console *console, const struct one_client *one)
{
    const struct server_limits *limits = &one->limits;
    const char *priority = limits->priority ? "below normal" : "normal";

    if (limits->fixed_only)
        console_print(console, "Client %d: its static partition, %s priority", (int)one->pid,
                      priority);
    else
        console_print(console, "Client %d: %u.%u %% of the SMs, %s priority", (int)one->pid,
                      limits->sm_centipercent / 100, limits->sm_centipercent % 100 / 10, priority);
}

static void on_limited(void *context, int status, const struct server_status_end *totals)
{
    struct one_client *one = context;
    struct limiting *limiting = one->limiting;

    if (status == 0)
        print_limits(limiting->console, one);
    else
        console_print(limiting->console, "Client %d has left", (int)one->pid);
    limiting->changed += status == 0;
    free(one);
    finish_one(limiting);
}

static bool is_meant(const struct limiting *limiting, const struct server_identity *identity)
{
    const struct grammar_values *values = &limiting->values;

    if (grammar_given(values, GRAMMAR_CLIENT) && identity->pid != values->client)
        return false;
    if (grammar_given(values, GRAMMAR_UID) && identity->uid != values->uid)
        return false;
    return !grammar_given(values, GRAMMAR_GROUP) || !strcmp(identity->group, values->group);
}

static void limit_one(struct limiting *limiting, struct server *server,
                      const struct server_status_row *row)
{
    struct one_client *one = calloc(1, sizeof(*one));
    struct server_set_limits message = {
        .pid = row->identity.pid, .id = row->id, .limits = row->limits};
    struct answer answer = {NULL, on_limited, one};

    if (!one) {
        limiting->status = COMMAND_FAILED;
        return;
    }
    limit_order_apply(&limiting->order, &server->ready, &message.limits);
    *one = (struct one_client){limiting, row->identity.pid, message.limits};
    limiting->outstanding++;
    server_ask(server, &message, SERVER_SET_LIMITS, LIMIT_TIMEOUT_S, &answer);
}

static void on_surveyed(struct survey *survey, void *context)
{
    struct limiting *limiting = context;

    for (unsigned i = 0; i < survey->part_count; i++) {
        const struct survey_part *part = &survey->parts[i];
        struct server *server = server_by_pid(limiting->console->daemon, part->server.pid);

        for (unsigned j = 0; server && j < part->client_count; j++)
            if (is_meant(limiting, &part->clients[j].identity))
                limit_one(limiting, server, &part->clients[j]);
    }
    finish_one(limiting);
}

/* ---- the command ---- */

static struct limit_order order_of(const struct grammar_values *values)
{
    struct limit_order order = {
        .sm_centipercent = values->centipercent,
        .sms = values->sms,
        .sets_priority = grammar_given(values, GRAMMAR_PRIORITY),
        .sets_memory = grammar_given(values, GRAMMAR_CEILING),
        .priority = values->priority,
        .memory = values->memory,
    };

    text_copy(order.device, sizeof(order.device), values->device);
    return order;
}

/* NULL, or what is wrong. */
static const char *check(const struct grammar_values *values)
{
    unsigned targets = grammar_given(values, GRAMMAR_CLIENT) + grammar_given(values, GRAMMAR_UID) +
                       grammar_given(values, GRAMMAR_GROUP);
    bool changes = grammar_given(values, GRAMMAR_PERCENT) || grammar_given(values, GRAMMAR_SMS) ||
                   grammar_given(values, GRAMMAR_CEILING) ||
                   grammar_given(values, GRAMMAR_PRIORITY);

    if (targets != 1)
        return "Say whose limits: one of -client, -user and -group";
    if (!changes)
        return "Say what to change: -sm, -sms, -memory or -priority";
    if (grammar_given(values, GRAMMAR_PERCENT) && grammar_given(values, GRAMMAR_SMS))
        return "-sm and -sms say the same in two ways: use one of them";
    if (grammar_given(values, GRAMMAR_DEVICE) && !grammar_given(values, GRAMMAR_CEILING))
        return "-device goes with -memory";
    return NULL;
}

/* Those who come later are bound, too. NULL, or what is wrong. */
static const char *remember(struct limiting *limiting)
{
    const struct grammar_values *values = &limiting->values;

    if (grammar_given(values, GRAMMAR_CLIENT))
        return NULL;
    return rules_set(&limiting->console->daemon->rules, values->group, values->uid,
                     &limiting->order)
               ? "No more users and groups can have limits"
               : NULL;
}

void run_limit(struct console *console, const struct grammar_values *values)
{
    struct limiting *limiting = calloc(1, sizeof(*limiting));
    const char *wrong = limiting ? check(values) : "Out of memory";

    if (!wrong) {
        *limiting = (struct limiting){console, *values, order_of(values), 1, 0, COMMAND_OK};
        wrong = remember(limiting);
    }
    if (!wrong && survey_start(console->daemon, NULL, NULL, on_surveyed, limiting))
        wrong = "Out of memory";
    if (!wrong)
        return;
    free(limiting);
    console_print(console, "%s", wrong);
    console_done(console, COMMAND_REJECTED);
}
