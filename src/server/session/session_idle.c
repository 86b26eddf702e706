/* SPDX-License-Identifier: Apache-2.0 */
/* See session_idle.h. */
#include "session_idle.h"

#include <time.h>

#include "clock.h"
#include "device_printf.h"
#include "stream.h"
#include "suspend.h"

#define PAUSE_NS (200 * NS_PER_US)

static bool is_idle(struct session *session, const struct idle_wait *wait)
{
    return streams_are_idle(session) && (!wait->collects_output || device_printf_settle(session));
}

static bool is_over(const struct session *session, const struct idle_wait *wait)
{
    return session->stop || (wait->is_wanted && !wait->is_wanted(session)) ||
           (wait->deadline && clock_ns() > wait->deadline);
}

static void pause_between_polls(struct session *session, const struct idle_wait *wait)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    session_set_at_rest(session, wait->rests);
    nanosleep(&pause, NULL);
    session_set_at_rest(session, false);
}

bool session_await_idle(struct session *session, const struct idle_wait *wait)
{
    while (!is_idle(session, wait)) {
        if (is_over(session, wait))
            return false;
        pause_between_polls(session, wait);
    }
    return true;
}
