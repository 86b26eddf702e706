/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: what a client has of a library, which it may share with other clients.
 */
#pragma once

#include "module_cache.h"
#include "server.h"
#include "session.h"

struct module {
    struct cached *cached; /* the library: see module_cache.h */
    const struct device *device;
    uint64_t charged;              /* bytes of its variables, against the client's memory limit */
    struct print_formats *formats; /* of what its kernels may print: NULL = unknown */
    struct list functions;         /* struct function */
};

/* The library of a module. */
static inline const struct library *module_library(const struct module *module)
{
    return cached_library(module->cached);
}

/* Ends a module that is not in the handle table any more, with its functions. Its kernels do not
 * run any more, unless its library may still be used by other clients. NULL is allowed. */
void module_destroy(struct session *session, struct module *module);

/* Whether its library has variables, so that it serves this client alone. */
bool module_has_state(const struct module *module);

/* Ends all modules of the client, whose work is done; their handles are free again. */
void modules_forget_all(struct session *session);

/* The client's work is done: gives back the libraries that the client unloaded while it worked. */
void module_put_parked(struct session *session);

/* ---- the parts of the server and of a session ---- */

/* A subsystem that keeps functions of modules, or addresses of their variables, and has to forget
 * those of a module that is about to end. */
struct module_observer {
    struct list link;
    void (*forget)(struct session *session, const struct module *module);
};

/* The memory subsystem's part is there. `keeps_libraries` is false where each client loads its
 * libraries itself: FUNNEL_NO_MODULE_CACHE. 0 or -ENOMEM. */
int server_modules_init(struct server *server, bool keeps_libraries);
void server_modules_fini(struct server *server);

/* Before there are sessions. The observer stays the caller's and must outlive the server. */
void server_modules_observe(struct server *server, struct module_observer *observer);

/* The cache of the server, which has a lock of its own. */
struct module_cache *server_module_cache(struct server *server);

/* The part of a session. 0 or -ENOMEM. */
int session_modules_init(struct session *session);
void session_modules_fini(struct session *session);
