/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: a client's use of a library, which other clients may share.
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
    struct list bindings;          /* of its texture references: server/reference */
    bool has_references;           /* the client has asked for one */
};

/* The module's library. */
static inline const struct library *module_library(const struct module *module)
{
    return cached_library(module->cached);
}

/* Destroys a module, which is out of the handle table, and its functions. Its kernels may still run
 * only if its library can serve other clients. NULL is allowed. */
void module_destroy(struct session *session, struct module *module);

/* Whether its library has variables, so that it serves this client alone. */
bool module_has_state(const struct module *module);

/* Whether a client that has it cannot go on in another server. What its kernels keep is lost then,
 * or they call functions by addresses that are others there. */
bool module_ends_with_server(const struct module *module);

/* Ends all modules of the client, whose work is done; their handles are free again. */
void modules_forget_all(struct session *session);

/* The client's work is done: drops its parked libraries. */
void module_put_parked(struct session *session);

/* ---- the parts of the server and of a session ---- */

/* An observer keeps functions of modules, or addresses of their variables. It must forget those of
 * a module that is about to end. */
struct module_observer {
    struct list link;
    void (*forget)(struct session *session, const struct module *module);
};

/* The memory subsystem's part exists. With `keeps_libraries` false each client loads its own
 * libraries: FUNNEL_OFF=module-cache. 0 or -ENOMEM. */
int server_modules_init(struct server *server, bool keeps_libraries);
void server_modules_fini(struct server *server);

/* Before there are sessions. The caller keeps the observer, which must outlive the server. */
void server_modules_observe(struct server *server, struct module_observer *observer);

/* The server's module cache, which has its own lock. */
struct module_cache *server_module_cache(struct server *server);

/* The part of a session. 0 or -ENOMEM. */
int session_modules_init(struct session *session);
void session_modules_fini(struct session *session);
