/* SPDX-License-Identifier: Apache-2.0 */
/* Waits of a session's thread until the client's streams are idle. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct session;

struct idle_wait {
    uint64_t deadline;                                /* clock_ns(); 0 = none */
    bool (*is_wanted)(const struct session *session); /* still; NULL = always */
    bool collects_output;                             /* of the client's kernels that print, too */

    /* Between two polls the thread counts as at rest, so exclusive calls do not wait for it. Only
     * for a caller that gives the streams no work after the wait. */
    bool rests;
};

/* False when the streams still have work at the deadline, when the wait is not wanted any more, and
 * when the session ends. It polls at least once. */
bool session_await_idle(struct session *session, const struct idle_wait *wait);
