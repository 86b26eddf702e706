/* SPDX-License-Identifier: Apache-2.0 */
/* See client_record.h. */
#include "client_record.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client_figures.h"
#include "clock.h"
#include "departed.h"
#include "funnel_errors.h"
#include "journal.h"
#include "server_process.h"
#include "usage_journal.h"
#include "usage_totals.h"

/* Unique over the lanes of the service, so that an ID names one program. */
static uint32_t next_id(const struct server_process *server)
{
    uint32_t last = server->last_client;

    list_for_each (struct server_process, other, &server->daemon->servers, link)
        if (!strcmp(other->service, server->service) && strcmp(other->name, server->name) &&
            other->last_client > last)
            last = other->last_client;
    return last + 1;
}

struct client_record *client_record_add(struct server_process *server,
                                        const struct server_identity *identity,
                                        const struct client_program *program)
{
    bool is_full = server->handed_over >= CLIENT_RECORDS_MAX;
    struct client_record *record = is_full ? NULL : calloc(1, sizeof(*record));

    if (!record)
        return NULL;
    record->server = server;
    record->id = server->last_client = next_id(server);
    record->identity = *identity;
    record->program = *program;
    record->given_ns = clock_ns();
    if (!server_file_place_client(record)) {
        free(record);
        return NULL;
    }
    list_append(&server->records, &record->link);
    server->handed_over++;
    server->idle_since = 0;
    return record;
}

struct client_record *client_record_find_token(const struct daemon *daemon,
                                               const uint8_t token[HELLO_TOKEN_SIZE])
{
    static const uint8_t none[HELLO_TOKEN_SIZE];

    if (!memcmp(token, none, sizeof(none)))
        return NULL;
    list_for_each (struct server_process, server, &daemon->servers, link)
        list_for_each (struct client_record, record, &server->records, link)
            if (!memcmp(record->token, token, sizeof(record->token)))
                return record;
    return NULL;
}

static void add_earlier_use(struct client_record *record, const struct client_record *before)
{
    record->before = before->before;
    usage_add(&record->before, &before->last.usage);
}

/* The program's record in the lane that it has moved to. */
static struct client_record *find_next(const struct client_record *record)
{
    const struct daemon *daemon = record->server->daemon;

    list_for_each (struct server_process, server, &daemon->servers, link)
        list_for_each (struct client_record, other, &server->records, link)
            if (other != record && !memcmp(other->token, record->token, sizeof(other->token)))
                return other;
    return NULL;
}

/* When it arrived there, not all was known yet that it has used here. */
static void tell_next(const struct client_record *record)
{
    struct client_record *next = record->has_moved ? find_next(record) : NULL;

    if (next) {
        add_earlier_use(next, record);
        client_record_save(next);
    }
    if (!next || !next->attached)
        departed_enter(record);
}

static const struct client_record *find_before(const struct client_record *record,
                                               const struct hello *hello)
{
    const struct server_process *server = record->server;
    const struct client_record *before = client_record_find_token(server->daemon, hello->token);

    if (!hello->window_base)
        return NULL;
    if (before)
        return strcmp(before->server->service, server->service) ? NULL : before;
    return departed_find(server->daemon, server->service, hello->token);
}

/* The program is the same one, and has not lost its last server by that server's end. */
static void continue_facts(struct client_record *record, const struct client_record *before)
{
    record->identity.since = before->identity.since;
    add_earlier_use(record, before);
    if (!client_record_find(record->server, before->id))
        record->id = before->id;
}

void client_record_continue(struct client_record *record, const struct hello *hello)
{
    const struct client_record *before = find_before(record, hello);

    memcpy(record->token, hello->token, sizeof(record->token));
    record->class = hello->class;
    record->is_of_job = hello->is_of_job != 0;
    if (!before)
        return;
    record->has_limits = before->has_limits;
    record->limits = before->limits;
    if (before->server || before->has_moved)
        continue_facts(record, before);
}

struct client_record *client_record_add_saved(struct server_process *server, unsigned slot,
                                              const struct saved_client *saved)
{
    struct client_record *record = calloc(1, sizeof(*record));

    if (!record)
        return NULL;
    *record = (struct client_record){.server = server,
                                     .id = saved->id,
                                     .identity = saved->identity,
                                     .program = saved->program,
                                     .slot = slot,
                                     .given_ns = saved->given_ns,
                                     .ended = saved->ended,
                                     .attached = saved->attached,
                                     .window_base = saved->window_base,
                                     .last = saved->last};
    record->has_limits = saved->has_limits;
    record->limits = saved->limits;
    record->is_of_job = saved->is_of_job != 0;
    record->before = saved->before;
    memcpy(record->token, saved->choice.token, sizeof(record->token));
    lane_choice_set(&server->daemon->lane_choices, record->token, saved->choice.class,
                    lane_wish_is_batch(saved->choice.wish) ? saved->choice.wish : LANE_OF_CLASS);
    server->file.used[slot / 64] |= 1ull << slot % 64;
    list_append(&server->records, &record->link);
    server->handed_over++;
    return record;
}

void client_record_save(struct client_record *record)
{
    server_file_save_client(record);
}

bool client_record_is_called(const struct client_record *record, pid_t number)
{
    return record->identity.pid ? record->identity.pid == number : record->id == (uint32_t)number;
}

bool client_record_exists(const struct daemon *daemon, pid_t number)
{
    list_for_each (struct server_process, server, &daemon->servers, link)
        list_for_each (struct client_record, record, &server->records, link)
            if (client_record_is_called(record, number))
                return true;
    return false;
}

struct client_record *client_record_find(struct server_process *server, uint32_t id)
{
    list_for_each (struct client_record, record, &server->records, link)
        if (record->id == id)
            return record;
    return NULL;
}

struct lane_choice client_record_choice(const struct client_record *record)
{
    return lane_choice_find(&record->server->daemon->lane_choices, record->token);
}

void client_record_forget(struct client_record *record)
{
    server_file_forget_client(record);
    record->server->handed_over--;
    list_remove(&record->link);
    free(record);
}

static struct client_bounds bounds_of(const struct client_record *record)
{
    return (struct client_bounds){&record->server->ready, clock_ns() - record->given_ns};
}

static void log_impossible(const struct client_record *record)
{
    struct server_process *server = record->server;

    if (server->has_exaggerated)
        return;
    server->has_exaggerated = true;
    journal(
        "Server %d says that client %d (id %u) has used more than there was since it came; only "
        "what was there counts, for this client and those that follow",
        (int)server->pid, record->identity.pid, record->id);
}

void client_record_note(struct client_record *record, const struct server_client_gone *message)
{
    const struct client_bounds bounds = bounds_of(record);

    record->last = *message;
    bool fits = client_usage_bound(&record->last.usage, &bounds);
    if (!client_memory_bound(record->last.memory_peak, &bounds) || !fits)
        log_impossible(record);
    client_record_save(record);
}

bool client_record_complete(struct client_record *record, struct server_status_row *row)
{
    const struct client_bounds bounds = bounds_of(record);
    bool is_first = record->last_request != row->header.request;

    record->last_request = row->header.request;
    row->identity = record->identity;
    bool fits = client_usage_bound(&row->usage, &bounds);
    fits &= client_memory_bound(row->memory_used, &bounds);
    fits &= client_memory_bound(row->memory_swapped, &bounds);
    if (!client_memory_bound(row->memory_peak, &bounds) || !fits)
        log_impossible(record);
    row->before = record->before;
    usage_add(&row->usage, &row->before);
    return is_first;
}

static void write_down(const struct client_record *record)
{
    const struct server_process *server = record->server;

    if (record->attached)
        usage_journal_add(server->daemon, server->service, &server->ready, &record->identity,
                          &record->last, record->ended);
}

/* A daemon that is killed in between leaves a record whose line the next one can tell. */
static void end_record(struct client_record *record)
{
    record->ended = time(NULL);
    client_record_save(record);
    write_down(record);
    client_record_forget(record);
}

void client_record_end(struct client_record *record, const struct server_client_gone *message)
{
    client_record_note(record, message);
    tell_next(record);
    end_record(record);
}

void client_record_end_again(struct client_record *record)
{
    const struct server_process *server = record->server;

    if (record->attached && !usage_journal_has(server->daemon, server->service, &server->ready,
                                               &record->identity, &record->last, record->ended))
        write_down(record);
    client_record_forget(record);
}

/* A client that is left has not been reported as gone. */
static void audit(const struct client_record *record)
{
    if (record->attached && record->server->daemon->audits)
        journal("Audit: client %d of server %s: how much memory it held is not known, because the "
                "server has died",
                record->identity.pid, record->server->name);
}

void client_records_close(struct server_process *server)
{
    list_for_each_safe (struct client_record, record, &server->records, link) {
        audit(record);
        record->last.id = record->id;
        record->last.status = FUNNEL_ERROR_MPS_RPC_FAILURE;
        departed_enter(record);
        end_record(record);
    }
}
