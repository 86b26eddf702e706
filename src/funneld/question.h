/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server has been asked (server_ask) and has not answered yet. Each question has a number,
 * which its answers carry, and a time after which nobody waits for them.
 */
#pragma once

#include <stdint.h>

#include "server_protocol.h"

struct server;

/* An answer has come, in part or as a whole. One that nobody waits for is left alone. */
void question_row(struct server *server, const struct server_status_row *message);
void question_answered(struct server *server, uint32_t number, int status,
                       const struct server_status_end *totals);

/* It will not answer any more. */
void questions_end(struct server *server);
