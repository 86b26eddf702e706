/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A survey asks every server (or one) who its clients are and what they use, all at once, and is
 * done when each has answered, died, or kept silent for too long.
 */
#pragma once

#include "command_protocol.h"
#include "daemon.h"

struct server;
struct survey;

/* What one server said. */
struct survey_part {
    struct survey *survey;
    struct command_server server;
    struct server_status_row *clients;
    unsigned client_count;
    unsigned capacity;
};

struct survey {
    unsigned part_count;
    unsigned outstanding;
    struct survey_part *parts;
    void (*done)(struct survey *survey, void *context); /* the survey ends with this call */
    void *context;
};

/* Asks the servers for which `wanted` (NULL = all) is true: 0, or -ENOMEM and `done` is not called.
 * `done` may be called before this returns. */
int survey_start(struct daemon *daemon, bool (*wanted)(const struct server *, const void *),
                 const void *selector, void (*done)(struct survey *, void *), void *context);
