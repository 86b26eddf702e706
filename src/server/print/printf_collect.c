/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distributes the output of the driver's buffers to clients.
 *
 * A record can belong only to a client whose kernels may have printed since its last collection.
 * Among several such clients the formats decide: the client with the longest match gets the record.
 * Copies of one program have the same formats, so a record may match several clients. Then each
 * gets it, so that none misses its own.
 */
#include "printf_collect.h"

#include "cleanup.h"
#include "driver_output.h"
#include "format_match.h"
#include "log.h"

#define LOGGED_LINE 128 /* bytes, about, of a line in the log without output */

/* The driver's writes, and the context to which they may belong. */
struct output {
    struct server_printf *printer;
    unsigned first, last;
    struct driver_writes writes;
};

/* A record: a range of writes. */
struct record {
    size_t at, end;
};

#define for_each_client(client, output)                             \
    for (unsigned i_ = (output)->first; i_ <= (output)->last; i_++) \
        list_for_each (struct printf_client, client, &(output)->printer->contexts[i_].clients, link)

/* ---- matching ---- */

static size_t longest_of(const struct print_formats *formats, const struct driver_writes *writes,
                         size_t at)
{
    size_t longest = 0;

    for (size_t i = 0; i < formats->size; i += strlen(formats->texts + i) + 1) {
        size_t end = format_match(formats->texts + i, writes, at);
        longest = end > longest ? end : longest;
    }
    return longest;
}

static size_t longest_of_set(const struct print_format_set *set, const struct driver_writes *writes,
                             size_t at)
{
    size_t longest = 0;

    for (unsigned i = 0; i < set->count; i++) {
        size_t end = longest_of(set->each[i], writes, at);
        longest = end > longest ? end : longest;
    }
    return longest;
}

/* Sets the match length, `fits`, of each client, and returns the largest. */
static size_t fit_formats_locked(const struct output *output, size_t at)
{
    size_t longest = 0;

    for_each_client(client, output)
    {
        client->fits = longest_of_set(&client->formats, &output->writes, at);
        longest = client->fits > longest ? client->fits : longest;
    }
    return longest;
}

/* No known format matches. Then clients with unknown formats get the record, or all clients,
 * because a kernel may compose a format. */
static size_t fit_unknown_locked(const struct output *output, size_t at)
{
    bool any = false;
    const char *text;
    size_t size, end = driver_writes_next(&output->writes, at, &text, &size);

    for_each_client(client, output) any |= client->formats.has_unknown;
    for_each_client(client, output) client->fits = client->formats.has_unknown == any ? end : 0;
    return end;
}

/* ---- distribution ---- */

static void log_loss_locked(struct session *session, size_t size)
{
    bool last;

    if (error_budget_take(&session->printf->lost, LOGGED_LINE, &last))
        session_log_event(session, 0,
                          " does not read its device printf output: %zu bytes are "
                          "lost%s",
                          size, last ? ", and more may be that are not logged" : "");
}

static void keep_text(struct session *session, const char *text, size_t size)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->printf->lock);

    if (!backlog_add(&session->printf->backlog, text, size))
        log_loss_locked(session, size);
}

static void give_record(const struct output *output, struct record record, struct session *session)
{
    while (record.at < record.end) {
        const char *text;
        size_t size;

        record.at = driver_writes_next(&output->writes, record.at, &text, &size);
        keep_text(session, text, size);
    }
}

static void note_mixture_locked(struct session *session)
{
    if (session->printf->is_mixed)
        return;
    session->printf->is_mixed = true;
    session_log_event(session, 0,
                      " and others print at the same time from the same code: lines "
                      "that each of them may have printed come out of all of them");
}

static void give_to_all_locked(const struct output *output, struct record record)
{
    unsigned count = 0;

    for_each_client(client, output) count += client->fits == record.end;
    for_each_client(client, output)
    {
        if (client->fits != record.end)
            continue;
        if (count > 1)
            note_mixture_locked(client->session);
        give_record(output, record, client->session);
    }
}

/* Unlocks between records, so that launches can take the lock. Returns the end of the record; 0
 * when no client may have printed it. */
static size_t distribute_record(const struct output *output, size_t at)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&output->printer->lock);
    size_t end = fit_formats_locked(output, at);
    bool any = false;

    for_each_client(client, output) any = true;
    if (!any)
        return 0;
    if (!end)
        end = fit_unknown_locked(output, at);
    give_to_all_locked(output, (struct record){at, end});
    return end;
}

static bool may_log(struct server_printf *printer, size_t size)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);
    bool last;

    return error_budget_take(&printer->unknown, LOGGED_LINE + size, &last);
}

static void log_rest(const struct output *output, size_t at)
{
    char line[PRINTF_LOGGED_MAX];
    size_t size = 0;

    while (at < output->writes.size) {
        const char *text;
        size_t length;

        at = driver_writes_next(&output->writes, at, &text, &length);
        length = length < sizeof(line) - size ? length : sizeof(line) - size;
        memcpy(line + size, text, length);
        size += length;
    }
    if (may_log(output->printer, size))
        log_line("Device printf output of an unknown client: %.*s", (int)size, line);
}

static void distribute(struct output *output)
{
    size_t at = 0, end;

    while (at < output->writes.size && (end = distribute_record(output, at)))
        at = end;
    if (at < output->writes.size)
        log_rest(output, at);
    driver_writes_fini(&output->writes);
}

/* Output of other calls comes first, because it is older. */
bool printf_distribute_held(struct server_printf *printer, unsigned context)
{
    struct output unknown = {.printer = printer, .last = ATTACH_DEVICES_MAX - 1};
    struct output known = {.printer = printer, .first = context, .last = context};

    driver_output_take(DRIVER_OUTPUT_UNKNOWN, &unknown.writes);
    bool any = unknown.writes.size > 0;
    distribute(&unknown);
    driver_output_take(context, &known.writes);
    any |= known.writes.size > 0;
    distribute(&known);
    return any;
}

bool printf_deliver(struct session *session)
{
    struct backlog *backlog = &session->printf->backlog;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->printf->lock);

    backlog_deliver(backlog, session->channel, OUTPUT_STDOUT);
    return backlog_empty(backlog);
}
