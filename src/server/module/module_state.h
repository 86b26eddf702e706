/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module subsystem's state of the server and of a session. Only its own files include this.
 */
#pragma once

#include "server_module.h"

#define SESSION_FUNCTIONS_MAX (1u << 19)

struct server_modules {
    struct module_cache cache;
    struct list observers; /* struct module_observer */
};

struct session_modules {
    struct list parked[SERVER_MAX_DEVICES]; /* libraries that it has unloaded: module_cache.h */
    unsigned counts[SERVER_MAX_DEVICES];    /* of its modules */
    unsigned functions, links;
};
