/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that compute between their launches and wait for few of them, as trainings do. While
 * CPUs are short they get as much done as their CPUs let them: who has to share one falls behind.
 */
#pragma once

#include "server.h"

struct trainings {
    unsigned at_work;  /* how many there are */
    uint64_t launches; /* recent ones of each, on average: launch_rate.h */
};

/* The watchdog, with the server's lock, in each of its rounds. */
struct trainings trainings_measure_locked(struct server *server);

/* Whether the session is one of those. */
bool trainings_have(const struct session *session);

/* Whether one of those has launched more than they have on average, or clearly more. */
bool trainings_are_behind(const struct trainings *trainings, const struct session *session,
                          bool clearly);
