/* SPDX-License-Identifier: Apache-2.0 */
/* See client_ranges.h. A range is sent when it ends, so that the server pairs nothing. */
#include "client_ranges.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_entry.h"
#include "clock.h"
#include "text.h"
#include "wire_calls.h"

/* Ranges that are deeper in each other, or more at a time, are not recorded. */
#define DEPTH_MAX 32u
#define OPEN_MAX 256u

struct range {
    uint64_t begin_ns; /* 0: is not recorded */
    char name[RANGE_NAME_MAX + 1];
};

/* The ranges that a thread has pushed. */
struct pushed {
    unsigned depth;
    struct range ranges[DEPTH_MAX];
};

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t pushed_key; /* struct pushed, freed when the thread ends */
static bool has_key;

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct range open_ranges[OPEN_MAX];

static bool is_traced(void)
{
    return client_mode() == CLIENT_FUNNEL && channel_traced(&client->channel);
}

void client_range_send(const char *name, uint64_t begin_ns, uint64_t end_ns)
{
    const struct wire_fnRange in = {
        .thread = (uint32_t)syscall(SYS_gettid),
        .begin_ns = begin_ns,
        .end_ns = end_ns,
        .name = name,
        .name_size = (uint32_t)strnlen(name, RANGE_NAME_MAX),
    };

    channel_lock(&client->channel);
    wire_fnRange(&client->channel, &in);
    channel_unlock(&client->channel);
}

static void send(const char *name, uint64_t begin_ns, uint64_t end_ns)
{
    call_begin();
    client_range_send(name, begin_ns, end_ns);
    call_end();
}

static void begin_range(struct range *range, const char *name)
{
    text_format(range->name, sizeof(range->name), "%.*s", RANGE_NAME_MAX, name);
    range->begin_ns = clock_ns();
}

static void end_range(struct range *range)
{
    if (range->begin_ns && is_traced())
        send(range->name, range->begin_ns, clock_ns());
    range->begin_ns = 0;
}

void client_mark(const char *name)
{
    uint64_t now = clock_ns();

    if (is_traced())
        send(name, now, now);
}

/* ---- ranges of a thread ---- */

static void make_key(void)
{
    has_key = pthread_key_create(&pushed_key, free) == 0;
}

/* NULL when there is no memory. */
static struct pushed *pushed_of_thread(void)
{
    struct pushed *pushed;

    pthread_once(&key_once, make_key);
    if (!has_key)
        return NULL;
    pushed = pthread_getspecific(pushed_key);
    if (pushed || !(pushed = calloc(1, sizeof(*pushed))))
        return pushed;
    if (pthread_setspecific(pushed_key, pushed) == 0)
        return pushed;
    free(pushed);
    return NULL;
}

int client_range_push(const char *name)
{
    struct pushed *pushed = pushed_of_thread();

    if (!pushed)
        return -1;
    if (pushed->depth < DEPTH_MAX && is_traced())
        begin_range(&pushed->ranges[pushed->depth], name);
    return (int)pushed->depth++;
}

int client_range_pop(void)
{
    struct pushed *pushed = pushed_of_thread();

    if (!pushed || !pushed->depth)
        return -1;
    pushed->depth--;
    if (pushed->depth < DEPTH_MAX)
        end_range(&pushed->ranges[pushed->depth]);
    return (int)pushed->depth;
}

/* ---- ranges of a process ---- */

uint64_t client_range_start(const char *name)
{
    if (!is_traced())
        return 0;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&open_lock);
    for (uint64_t i = 0; i < OPEN_MAX; i++) {
        if (open_ranges[i].begin_ns)
            continue;
        begin_range(&open_ranges[i], name);
        return i + 1;
    }
    return 0;
}

void client_range_end(uint64_t number)
{
    struct range range = {0};

    if (!number || number > OPEN_MAX)
        return;
    pthread_mutex_lock(&open_lock);
    range = open_ranges[number - 1];
    open_ranges[number - 1].begin_ns = 0;
    pthread_mutex_unlock(&open_lock);
    end_range(&range);
}
