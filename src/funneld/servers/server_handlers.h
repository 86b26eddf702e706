/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's handlers of a server's messages. */
#pragma once

#include "connection.h"

/* For the connection of a server; its owner is the struct server_process. */
extern const struct connection_handlers server_connection_handlers;
