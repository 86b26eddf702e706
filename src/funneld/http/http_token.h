/* SPDX-License-Identifier: Apache-2.0 */
/* The secret that makes a reader an operator: `http-token` in the pipe directory, readable by the
 * daemon's user alone, new at each start. */
#pragma once

#include <stdbool.h>

/* Makes the secret and its file: 0 or -errno. */
int http_token_create(const char *directory);

/* Whether this is the secret. Takes the same time for every wrong one. */
bool http_token_fits(const char *token);

/* Removes the file. */
void http_token_remove(void);
