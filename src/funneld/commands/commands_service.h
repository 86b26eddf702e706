/* SPDX-License-Identifier: Apache-2.0 */
/* server create, set and delete: the records of named servers, which start for their first client.
 */
#pragma once

#include "commands.h"

/* The service of that name, which is made for uid_N when there is none; NULL, with a message where
 * it cannot be made. */
struct service *command_find_service(struct daemon *daemon, const char *name,
                                     char ret_reason[GRAMMAR_REASON_MAX]);

/* The same; else the command is answered, and NULL is returned. */
struct service *command_service(struct console *console, const char *name);
