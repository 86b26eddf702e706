/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains of fate: groups of programs of a service that a fault of another group does not reach.
 * Each has a lane of its own (lane.h). Programs in quarantine are a domain always. Operators and
 * programs ask for others (isolation.h): by `--isolate`, in the configuration file, and by
 * FUNNEL_ISOLATE.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon.h"
#include "lane_name.h"
#include "server_protocol.h"

/* What decides on the domain of a program, beside the program itself. */
struct fate_wish {
    const char *service;
    uint32_t class;      /* enum client_class */
    uint32_t set, asked; /* enum isolation: by operators, by the program */
};

/* The domain of the program; "" = it shares the lane of its class. True when the domain is one of
 * the program's user alone. */
bool fate_domain_find(const struct daemon *daemon, const struct server_identity *identity,
                      const struct client_program *program, const struct fate_wish *wish,
                      char ret_domain[LANE_DOMAIN_MAX]);

/* Whether the domain is another one for another executable. */
bool fate_domain_needs_program(const struct fate_wish *wish);
