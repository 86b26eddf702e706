/* SPDX-License-Identifier: Apache-2.0 */
/* See departed.h. */
#include "departed.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "process_stat.h"
#include "server_process.h"
#include "text.h"

/* A client that has left for another device looks for a server for 30 s, and then attaches. */
#define AWAITED_NS (40 * NS_PER_SEC)

/* As long as a status query waits for servers (status_query.c). */
#define ARRIVED_NS (5 * NS_PER_SEC)

static void forget(struct departed *departed)
{
    list_remove(&departed->link);
    free(departed);
}

void departed_fini(struct daemon *daemon)
{
    list_for_each_safe (struct departed, departed, &daemon->departed, link)
        forget(departed);
}

static bool is_of(const struct departed *departed, const uint8_t token[HELLO_TOKEN_SIZE])
{
    return !memcmp(departed->record.token, token, HELLO_TOKEN_SIZE);
}

static void forget_token(struct daemon *daemon, const uint8_t token[HELLO_TOKEN_SIZE])
{
    list_for_each_safe (struct departed, departed, &daemon->departed, link)
        if (is_of(departed, token))
            forget(departed);
}

void departed_arrive(struct daemon *daemon, const uint8_t token[HELLO_TOKEN_SIZE])
{
    uint64_t now = clock_ns();

    list_for_each_safe (struct departed, departed, &daemon->departed, link) {
        if (departed->has_arrived && now >= departed->awaited_until)
            forget(departed);
        else if (is_of(departed, token) && !departed->has_arrived) {
            departed->has_arrived = true;
            departed->awaited_until = now + ARRIVED_NS;
        }
    }
}

static void make_room(struct daemon *daemon, uid_t owner)
{
    struct departed *first = NULL;
    unsigned count = 0;

    list_for_each (struct departed, departed, &daemon->departed, link) {
        if (departed->record.identity.owner != owner)
            continue;
        first = first ? first : departed;
        count++;
    }
    if (count >= DEPARTED_MAX)
        forget(first);
}

static bool is_worth_keeping(const struct client_record *record)
{
    static const uint8_t none[HELLO_TOKEN_SIZE];

    return record->attached && memcmp(record->token, none, sizeof(none)) &&
           (record->has_moved || record->has_limits);
}

void departed_enter(const struct client_record *record)
{
    struct daemon *daemon = record->server->daemon;
    struct departed *departed = is_worth_keeping(record) ? calloc(1, sizeof(*departed)) : NULL;

    if (!departed)
        return;
    forget_token(daemon, record->token);
    make_room(daemon, record->identity.owner);
    departed->record = *record;
    departed->record.server = NULL;
    text_copy(departed->service, sizeof(departed->service), record->server->service);
    departed->awaited_until = record->has_moved ? clock_ns() + AWAITED_NS : 0;
    list_append(&daemon->departed, &departed->link);
}

const struct client_record *departed_find(const struct daemon *daemon, const char *service,
                                          const uint8_t token[HELLO_TOKEN_SIZE])
{
    list_for_each (struct departed, departed, &daemon->departed, link)
        if (is_of(departed, token) && !departed->has_arrived && !strcmp(departed->service, service))
            return &departed->record;
    return NULL;
}

const struct client_record *departed_awaited(const struct daemon *daemon, pid_t number)
{
    list_for_each (struct departed, departed, &daemon->departed, link) {
        const struct client_record *record = &departed->record;

        if (client_record_is_called(record, number) && clock_ns() < departed->awaited_until &&
            !process_is_gone(record->identity.pid))
            return record;
    }
    return NULL;
}
