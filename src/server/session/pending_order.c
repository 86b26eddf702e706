/* SPDX-License-Identifier: Apache-2.0 */
/* See pending_order.h. */
#include "pending_order.h"

#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"
#include "daemon_report.h"
#include "fd.h"
#include "session.h"

#define POLL_NS (5 * NS_PER_MS)

struct order_poll {
    struct pending_order order;
    struct watch *watch;
    int timer_fd;
};

bool order_is_about(const struct session *session, int32_t pid, uint32_t id)
{
    return session->identity.pid == pid && (!id || session->id == id);
}

static void order_poll_destroy(struct order_poll *poll)
{
    watch_destroy(poll->watch);
    fd_close(&poll->timer_fd);
    free(poll);
}

static void on_poll(void *context, int timer_fd)
{
    struct order_poll *poll = context;
    const struct pending_order *order = &poll->order;
    uint64_t count;
    int status;

    if (read(timer_fd, &count, sizeof(count)) < 0 ||
        !order->poll(order, clock_ns() >= order->deadline, &status))
        return;
    daemon_report_result(order->server, order->request, status);
    order_poll_destroy(poll);
}

bool pending_order_start(const struct pending_order *order)
{
    const struct itimerspec polls = {.it_interval.tv_nsec = POLL_NS, .it_value.tv_nsec = POLL_NS};
    struct order_poll *poll = malloc(sizeof(*poll));

    if (!poll)
        return false;
    *poll = (struct order_poll){
        .order = *order, .timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
    if (poll->timer_fd >= 0 && !timerfd_settime(poll->timer_fd, 0, &polls, NULL))
        poll->watch = loop_watch_readable(order->server->life->loop, poll->timer_fd, on_poll, poll);
    if (poll->watch)
        return true;
    order_poll_destroy(poll);
    return false;
}
