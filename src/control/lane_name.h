/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of lanes, which are the servers of one service. The main lane has the service's name.
 * The others have SERVICE:batch, SERVICE:DOMAIN and SERVICE:batch_DOMAIN, and no service can have
 * such a name. A domain is a group of programs that share a lane.
 */
#pragma once

#include <stdbool.h>

#include "server_protocol.h"

/* The name of a domain, with NUL. It has letters, digits and _, and never begins with "batch". */
#define LANE_DOMAIN_MAX 56

/* Kinds of domains: each has this name, or begins with it and _. */
#define LANE_DOMAIN_QUARANTINE "quarantine" /* programs that have faulted */
#define LANE_DOMAIN_SPARE "spare" /* those that came while long kernels ran in the main lane */
#define LANE_DOMAIN_NEW "new"     /* a program that has not yet ended without a fault */

/* The name of the service's lane for these programs; `domain` is "" for those in no domain. */
void lane_name(const char *service, bool is_batch, const char *domain,
               char ret_name[SERVER_NAME_MAX]);

/* The lane for batch programs, or for others, in the same domain as that one. That of the spare
 * lane does not go with its programs. */
void lane_name_other_class(const char *name, bool is_batch, char ret_name[SERVER_NAME_MAX]);

/* The service of a server of that name. */
void lane_name_service(const char *name, char ret_service[SERVER_NAME_MAX]);

bool lane_name_is_main(const char *name);

/* Whether it is a lane of batch programs, in a domain or not. */
bool lane_name_is_batch(const char *name);

/* Whether it is a lane of a domain of this kind, of batch programs or of others. */
bool lane_name_has_domain(const char *name, const char *kind);

/* Whether a server of that name is a lane of the service. */
bool lane_name_is_of(const char *name, const char *service);

/* "main", or what follows the name of the service. */
const char *lane_text(const char *name);
