/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client names by handles, besides streams: events, modules and their functions.
 */
#pragma once

#include "session.h"

struct event {
    CUevent driver; /* NULL when the driver refused to make it */
    const struct device *device;
};

struct jit;

struct module {
    CUlibrary driver;
    const struct device *device;
    struct jit *jit; /* compiler options and log: see module.c */
    bool prints;     /* its kernels may print: each of their launches is announced */
    struct list functions;
};

struct function {
    struct list link; /* in its module */
    struct module *module;
    CUfunction driver;
    uint64_t handle;
    uint32_t params_size; /* bytes of the packed parameter buffer */
    bool unchained;       /* the driver does not take it into a graph */
    char name[];
};

/* Give back what the driver holds for them. Nothing that uses them may still be running; they are
 * not in the handle table any more. NULL is allowed. */
void event_destroy(struct event *event);
void module_destroy(struct session *session, struct module *module);
void function_destroy(struct session *session, struct function *function);
