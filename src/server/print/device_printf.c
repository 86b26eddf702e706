/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's part in device printf: it records the formats before a launch of kernels that may
 * print, and collects output at the client's request.
 *
 * NVIDIA's driver writes the buffer of a context whenever a call synchronizes with any of its
 * streams. An idle stream suffices, and then the call waits for nothing.
 */
#include "device_printf.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "channel_server.h"
#include "cleanup.h"
#include "clock.h"
#include "driver_output.h"
#include "log.h"
#include "print_state.h"
#include "printf_collect.h"
#include "server_dispatch.h"

#define FAULT_TIMEOUT_S 1

/* How often, and after which pause, a collection is repeated while other clients print. */
#define FLUSHES_MORE 3u
#define FLUSH_PAUSE_NS (20 * NS_PER_US)
#define PRINTED_LATELY_NS (100 * NS_PER_MS)

int server_printf_init(struct server *server)
{
    struct server_printf *printer = calloc(1, sizeof(*printer));

    if (!printer)
        return -ENOMEM;
    pthread_mutex_init(&printer->lock, NULL);
    for (unsigned i = 0; i < ATTACH_DEVICES_MAX; i++) {
        pthread_mutex_init(&printer->contexts[i].collecting, NULL);
        list_init(&printer->contexts[i].clients);
    }
    server->printf = printer;
    return 0;
}

void server_printf_fini(struct server *server)
{
    free(server->printf);
}

int session_printf_init(struct session *session)
{
    struct session_printf *printf = calloc(1, sizeof(*printf));

    if (!printf)
        return -ENOMEM;
    pthread_mutex_init(&printf->lock, NULL);
    for (unsigned i = 0; i < ATTACH_DEVICES_MAX; i++) {
        list_init(&printf->clients[i].link);
        printf->clients[i].session = session;
    }
    session->printf = printf;
    return 0;
}

void session_printf_fini(struct session *session)
{
    free(session->printf);
}

/* ---- launches ---- */

static void set_pending(struct session *session, bool pending)
{
    if (session->printf->pending == pending)
        return;
    session->printf->pending = pending;
    channel_server_set_output_pending(session->channel, pending);
}

static void add_formats(struct printf_client *client, unsigned context,
                        struct print_formats *formats)
{
    struct server_printf *printer = client->session->server->printf;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);

    if (!printf_client_may_print(client))
        list_append(&printer->contexts[context].clients, &client->link);
    print_format_set_add(&client->formats, formats);
}

/* A client that sees a kernel's fence also sees that its output is pending. */
void device_printf_begin(struct session *session, const struct device *device,
                         struct print_formats *formats)
{
    struct printf_client *client = &session->printf->clients[device->ordinal];

    if (!print_format_set_has(&client->formats, formats))
        add_formats(client, device->ordinal, formats);
    set_pending(session, true);
}

/* ---- collecting ---- */

static void remove_client(struct printf_client *client)
{
    struct server_printf *printer = client->session->server->printf;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);

    list_remove(&client->link);
    print_format_set_fini(&client->formats);
}

static CUresult flush_held(struct server_printf *printer, const struct device *device)
{
    struct printf_context *context = &printer->contexts[device->ordinal];

    driver_output_is_of(device->ordinal);
    CUresult result = driver.cuStreamSynchronize(device->watch);
    driver_output_is_of(DRIVER_OUTPUT_UNKNOWN);
    if (printf_distribute_held(printer, device->ordinal))
        context->printed_at = clock_ns();
    return result;
}

static bool others_print(struct server_printf *printer, const struct printf_client *client,
                         const struct printf_context *context)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);

    list_for_each (struct printf_client, other, &context->clients, link)
        if (other != client)
            return context->printed_at && clock_ns() - context->printed_at < PRINTED_LATELY_NS;
    return false;
}

/* NVIDIA's driver stops at a record that a running kernel has not completed. The client's own
 * records may follow it, and no call reports that. So the collection is repeated. */
static CUresult flush_all_held(struct server_printf *printer, const struct device *device,
                               const struct printf_client *client)
{
    const struct timespec pause = {.tv_nsec = FLUSH_PAUSE_NS};
    CUresult result = flush_held(printer, device);

    for (unsigned i = 0; i < FLUSHES_MORE && result == CUDA_SUCCESS &&
                         others_print(printer, client, &printer->contexts[device->ordinal]);
         i++) {
        nanosleep(&pause, NULL);
        result = flush_held(printer, device);
    }
    return result;
}

/* Queries the kernels before the collection, because a kernel that ends meanwhile may print more.
 */
static CUresult collect_in(struct printf_client *client, const struct device *device)
{
    struct session *session = client->session;
    struct server_printf *printer = session->server->printf;
    CUresult result = session_visit(session, device);

    if (result != CUDA_SUCCESS)
        return result;
    bool done = print_checkpoints_are_reached(session, device);
    _cleanup_mutex_ pthread_mutex_t *collecting =
        mutex_hold(&printer->contexts[device->ordinal].collecting);
    result = flush_all_held(printer, device, client);
    if (done)
        remove_client(client);
    return result;
}

/* Returns whether the client's kernels that may print are done in all contexts. */
static bool collect_all(struct session *session)
{
    const struct devices *devices = &session->server->devices;
    bool done = true;

    for (unsigned i = 0; i < ATTACH_DEVICES_MAX; i++) {
        struct printf_client *client = &session->printf->clients[i];

        if (!printf_client_may_print(client))
            continue;
        session_check(session, collect_in(client, &devices->device[i]));
        done &= !printf_client_may_print(client);
    }
    return done;
}

static bool may_print(const struct session *session)
{
    for (unsigned i = 0; i < ATTACH_DEVICES_MAX; i++) {
        if (printf_client_may_print(&session->printf->clients[i]))
            return true;
    }
    return false;
}

/* Returns whether all output is delivered. The client stops asking when no more output can come. */
static bool deliver(struct session *session)
{
    bool delivered = printf_deliver(session);

    if (delivered && !may_print(session))
        set_pending(session, false);
    return delivered;
}

CUresult serve_fnPrintfCollect(struct session *session, const struct wire_fnPrintfCollect *in,
                               struct wire_fnPrintfCollect_reply *ret_out)
{
    if (!in->again)
        collect_all(session);
    ret_out->more = !deliver(session);
    return CUDA_SUCCESS;
}

CUresult serve_fnPrintfTake(struct session *session, const struct wire_fnPrintfTake *in)
{
    collect_all(session);
    deliver(session);
    return CUDA_SUCCESS;
}

bool device_printf_settle(struct session *session)
{
    bool done = collect_all(session);

    deliver(session);
    return done;
}

/* ---- the end ---- */

/* A client without recent output does not collect at every wait, so output may be left at its end.
 */
static void log_left_output(const struct session *session)
{
    const struct backlog *backlog = &session->printf->backlog;
    size_t size = backlog->size - backlog->start;

    if (size)
        session_log_event(session, 0,
                          " has ended before it asked for this device printf "
                          "output: %.*s",
                          size < PRINTF_LOGGED_MAX ? (int)size : PRINTF_LOGGED_MAX,
                          backlog->text + backlog->start);
}

/* A last collection takes the output of its kernels, so that it is not attributed to another
 * client. */
void device_printf_forget(struct session *session)
{
    collect_all(session);
    for (unsigned i = 0; i < ATTACH_DEVICES_MAX; i++)
        remove_client(&session->printf->clients[i]);
    log_left_output(session);
    backlog_drop(&session->printf->backlog);
}

/* Keeps the locks, so that no thread collects any more. */
static void distribute_all(struct server *server)
{
    struct server_printf *printer = server->printf;
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FAULT_TIMEOUT_S;
    for (unsigned i = 0; i < server->devices.count; i++) {
        if (!pthread_mutex_timedlock(&printer->contexts[i].collecting, &until))
            printf_distribute_held(printer, i);
    }
}

void device_printf_fault(struct server *server)
{
    distribute_all(server);
    list_for_each (struct session, session, &server->sessions, link) {
        if (session->phase == SESSION_SERVING)
            printf_deliver(session);
    }
}
