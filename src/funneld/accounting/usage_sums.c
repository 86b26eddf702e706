/* SPDX-License-Identifier: Apache-2.0 */
/* See usage_sums.h. */
#include "usage_sums.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "list.h"
#include "text.h"
#include "usage_totals.h"

#define SUMS_MAX 256u
#define SUM_NS (600 * NS_PER_SEC)

struct usage_sum {
    struct list link;
    uint64_t began;               /* clock_ns() */
    char server[SERVER_NAME_MAX]; /* "" = several */
    struct server_ready ready;
    struct server_identity who; /* of the first client, but for the user, who is its owner */
    struct server_client_gone gone;
    int64_t ended;
    unsigned clients, failed;
};

static struct list sums = {&sums, &sums};
static unsigned count;

static bool has_devices(const struct usage_sum *sum, const struct server_ready *ready)
{
    if (sum->ready.device_count != ready->device_count)
        return false;
    for (unsigned i = 0; i < ready->device_count; i++)
        if (memcmp(sum->ready.devices[i].uuid, ready->devices[i].uuid,
                   sizeof(ready->devices[i].uuid)))
            return false;
    return true;
}

static struct usage_sum *find_sum(const struct usage_line *line)
{
    list_for_each (struct usage_sum, sum, &sums, link)
        if (sum->who.uid == line->who->owner && has_devices(sum, line->ready))
            return sum;
    return NULL;
}

static struct usage_sum *usage_sum_create(const struct usage_line *line)
{
    struct usage_sum *sum = count < SUMS_MAX ? calloc(1, sizeof(*sum)) : NULL;

    if (!sum)
        return NULL;
    sum->began = clock_ns();
    text_copy(sum->server, sizeof(sum->server), line->server);
    sum->ready = *line->ready;
    sum->who = *line->who;
    sum->who.uid = line->who->owner;
    list_append(&sums, &sum->link);
    count++;
    return sum;
}

static void usage_sum_free(struct usage_sum *sum)
{
    list_remove(&sum->link);
    free(sum);
    count--;
}

bool usage_sums_add(const struct usage_line *line)
{
    struct usage_sum *sum = find_sum(line);

    if (!sum)
        sum = usage_sum_create(line);
    if (!sum)
        return false;
    if (strcmp(sum->server, line->server))
        sum->server[0] = '\0';
    usage_add(&sum->gone.usage, &line->gone->usage);
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        if (line->gone->memory_peak[i] > sum->gone.memory_peak[i])
            sum->gone.memory_peak[i] = line->gone->memory_peak[i];
    if (line->who->since < sum->who.since)
        sum->who.since = line->who->since;
    sum->gone.id = line->gone->id;
    sum->gone.status = line->gone->status;
    sum->ended = line->ended;
    sum->clients += line->clients;
    sum->failed += line->failed;
    return true;
}

static int write_sum(const struct usage_sum *sum,
                     int (*write)(void *context, struct evbuffer *line), void *context)
{
    const struct usage_line line = {sum->server, &sum->ready,  &sum->who,  &sum->gone,
                                    sum->ended,  sum->clients, sum->failed};
    struct evbuffer *text = evbuffer_new();
    int error = -1;

    if (text) {
        usage_line_add(text, &line);
        error = write(context, text);
        evbuffer_free(text);
    }
    return error;
}

unsigned usage_sums_write(bool all, int (*write)(void *context, struct evbuffer *line),
                          void *context)
{
    unsigned left = 0;

    list_for_each_safe (struct usage_sum, sum, &sums, link) {
        if (!all && clock_ns() - sum->began < SUM_NS)
            continue;
        if (write_sum(sum, write, context))
            left += sum->clients;
        else
            usage_sum_free(sum);
    }
    return left;
}
