/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only file of the server that uses libevent.
 */
#include "loop.h"

#include <event2/event.h>
#include <stdlib.h>

struct loop {
    struct event_base *base;
};

struct watch {
    struct event *event;
    watch_handler handler;
    void *context;
};

struct loop *loop_create(void)
{
    struct event_config *config = event_config_new();
    struct loop *loop = calloc(1, sizeof(*loop));

    if (config && loop && !event_config_require_features(config, EV_FEATURE_ET))
        loop->base = event_base_new_with_config(config);
    if (config)
        event_config_free(config);
    if (loop && !loop->base) {
        free(loop);
        return NULL;
    }
    return loop;
}

void loop_run(struct loop *loop)
{
    event_base_dispatch(loop->base);
}

void loop_stop(struct loop *loop)
{
    event_base_loopbreak(loop->base);
}

static void deliver(evutil_socket_t fd, short what, void *context)
{
    struct watch *watch = context;

    watch->handler(watch->context, (int)fd);
}

static struct watch *watch_create(struct loop *loop, int fd, short what, watch_handler handler,
                                  void *context)
{
    struct watch *watch = calloc(1, sizeof(*watch));

    if (!watch)
        return NULL;
    watch->handler = handler;
    watch->context = context;
    watch->event = event_new(loop->base, fd, what, deliver, watch);
    if (!watch->event || event_add(watch->event, NULL)) {
        watch_destroy(watch);
        return NULL;
    }
    return watch;
}

struct watch *loop_watch_readable(struct loop *loop, int fd, watch_handler handler, void *context)
{
    return watch_create(loop, fd, EV_READ | EV_PERSIST, handler, context);
}

struct watch *loop_watch_changes(struct loop *loop, int fd, watch_handler handler, void *context)
{
    /* Not EV_CLOSED: a peer that dies with unread messages causes an error event, which libevent
     * does not report as EV_CLOSED, and libevent would spin. */
    return watch_create(loop, fd, EV_READ | EV_ET | EV_PERSIST, handler, context);
}

struct watch *loop_watch_signal(struct loop *loop, int signal, watch_handler handler, void *context)
{
    return watch_create(loop, signal, EV_SIGNAL | EV_PERSIST, handler, context);
}

void watch_destroy(struct watch *watch)
{
    if (!watch)
        return;
    if (watch->event)
        event_free(watch->event);
    free(watch);
}
