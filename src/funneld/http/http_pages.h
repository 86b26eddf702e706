/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths that funneld --metrics serves: /metrics, the status page, and what the page asks for.
 * Without the secret of http_token.h a reader sees no command lines and no logs, and changes
 * nothing.
 */
#pragma once

#include "daemon.h"

/* Begins to serve at the address: 0 or -errno, as http_server_start(). */
int http_pages_start(struct daemon *daemon, const char *address);
void http_pages_stop(void);

/* For a reload: the listening socket, -1 without one; stops or goes on accepting; and whether a
 * connection is being answered. */
int http_pages_socket(void);
void http_pages_listen(bool on);
bool http_pages_are_read(void);
