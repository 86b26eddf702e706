/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface references of modules. The driver binds a reference of a module for the
 * launches behind that. A library with references serves one client alone, so the driver's
 * references are the client's own.
 */
#pragma once

#include "server.h"

/* The module subsystem's part exists. 0 or -ENOMEM. */
int server_references_init(struct server *server);
void server_references_fini(struct server *server);
