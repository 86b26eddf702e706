/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client names by handles, besides streams: events, modules and their functions.
 */
#pragma once

#include "module_cache.h"
#include "session.h"

struct ipc_share;

struct event {
    CUevent driver;          /* NULL when the driver refused to make it */
    struct ipc_share *share; /* what `driver` belongs to, once other clients may have it */
    const struct device *device;
};

struct module {
    struct cached *cached; /* the library: see module_cache.h */
    const struct device *device;
    bool may_print; /* its kernels may print: each of their launches is announced */
    struct list functions;
};

static inline const struct library *module_library(const struct module *module)
{
    return cached_library(module->cached);
}

/* CU_FUNC_ATTRIBUTE_*: one more than the documented ones 0..15 exists nowhere in the reply. */
#define FUNCTION_ATTRIBUTES 16

struct function {
    struct list link; /* in its module */
    struct module *module;
    struct known_kernel *known; /* the module's: every client's; NULL: the server's own function */
    CUfunction driver;
    uint64_t handle;
    uint32_t params_size;                    /* bytes of the packed parameter buffer */
    bool not_batchable;                      /* the driver does not take it into a graph */
    int32_t attributes[FUNCTION_ATTRIBUTES]; /* as this client has set them */
    char name[];
};

/* Gives the driver's function this client's carveout. */
void function_set_carveout(const struct function *function);

/* Before a launch: another client may have set its own. For most programs this is a comparison. */
static inline void function_prefer(const struct function *function)
{
    int32_t own = function->attributes[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT];

    if (function->known && __atomic_load_n(&function->known->carveout, __ATOMIC_RELAXED) != own)
        function_set_carveout(function);
}

/* Give back what the driver holds for them. Nothing that uses them may still be running; they are
 * not in the handle table any more. NULL is allowed. */
void event_destroy(struct session *session, struct event *event);
void module_destroy(struct session *session, struct module *module);
void function_destroy(struct session *session, struct function *function);
