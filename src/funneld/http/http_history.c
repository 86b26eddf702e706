/* SPDX-License-Identifier: Apache-2.0 */
/* A sample is kept as the text that it will be read as. */
#include "http_history.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "status_query.h"

#define SAMPLES 150u
#define PERIOD_S 2

/* A sample of more clients than fit into this is left out. */
#define SAMPLE_BYTES_MAX (64u << 10)

static struct {
    struct event *timer;
    struct evbuffer *samples[SAMPLES];
    unsigned next;
    bool is_asking;
} history;

static void add_client(struct evbuffer *out, const struct status_report *report,
                       const struct server_status_row *row, const char *between)
{
    uint64_t gpu = 0, sm = 0, memory = 0;

    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++) {
        gpu += row->usage.gpu_ns[i];
        sm += row->usage.sm_ns[i];
        memory += row->memory_used[i];
    }
    evbuffer_add_printf(out, "%s[%d,%u,%.3f,%.3f,%llu]", between, report->server.pid, row->id,
                        (double)gpu / 1e9, (double)sm / 1e9, (unsigned long long)memory);
}

static void add_sample(struct evbuffer *out, const struct status_query *query)
{
    const char *between = "";

    evbuffer_add_printf(out, "[%lld,[", (long long)time(NULL));
    for (unsigned i = 0; i < query->report_count; i++)
        for (unsigned j = 0; j < query->reports[i].client_count; j++) {
            add_client(out, &query->reports[i], &query->reports[i].clients[j], between);
            between = ",";
        }
    evbuffer_add_printf(out, "]]");
}

static void on_status(struct status_query *query, void *context)
{
    struct evbuffer *sample = history.timer ? evbuffer_new() : NULL;
    struct evbuffer **place = &history.samples[history.next % SAMPLES];

    history.is_asking = false;
    if (!sample)
        return;
    add_sample(sample, query);
    if (evbuffer_get_length(sample) > SAMPLE_BYTES_MAX) {
        evbuffer_free(sample);
        return;
    }
    if (*place)
        evbuffer_free(*place);
    *place = sample;
    history.next++;
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
    if (!history.is_asking)
        history.is_asking = status_query_start(context, NULL, NULL, on_status, NULL) == 0;
}

int http_history_start(struct daemon *daemon)
{
    const struct timeval period = {.tv_sec = PERIOD_S};

    history.timer = event_new(daemon->base, -1, EV_PERSIST, on_timer, daemon);
    return history.timer && !evtimer_add(history.timer, &period) ? 0 : -ENOMEM;
}

void http_history_stop(void)
{
    if (history.timer)
        event_free(history.timer);
    history.timer = NULL;
    for (unsigned i = 0; i < SAMPLES; i++) {
        if (history.samples[i])
            evbuffer_free(history.samples[i]);
        history.samples[i] = NULL;
    }
}

void http_history_add(struct evbuffer *out)
{
    const char *between = "";

    evbuffer_add(out, "[", 1);
    for (unsigned i = history.next < SAMPLES ? 0 : history.next - SAMPLES; i < history.next; i++) {
        struct evbuffer *sample = history.samples[i % SAMPLES];

        evbuffer_add_printf(out, "%s", between);
        evbuffer_add(out, evbuffer_pullup(sample, -1), evbuffer_get_length(sample));
        between = ",";
    }
    evbuffer_add(out, "]", 1);
}
