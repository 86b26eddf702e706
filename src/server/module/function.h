/* SPDX-License-Identifier: Apache-2.0 */
/* A function of a client: a kernel and its facts. */
#pragma once

#include "server_module.h"

/* CU_FUNC_ATTRIBUTE_*: the documented ones, 0..15. */
#define FUNCTION_ATTRIBUTES 16

struct function {
    struct list link; /* in its module */
    struct module *module;
    struct known_kernel *known; /* the library's record, shared by all clients; NULL for a kernel of
                                   the server's own */
    CUfunction driver;
    uint64_t handle;
    uint32_t params_size;                    /* bytes of the packed parameter buffer */
    uint32_t uses;                           /* FUNCTION_MAY_PRINT, and bits of CUlimit */
    bool not_batchable;                      /* the driver refuses it in a graph */
    bool has_own_attributes;                 /* function_launch_attributes() has some */
    int32_t attributes[FUNCTION_ATTRIBUTES]; /* as this client has set them */
    char name[];
};

/* The client's attributes that the driver would keep for all clients, as launch attributes: at most
 * FUNCTION_LAUNCH_ATTRIBUTES. Returns their number. */
#define FUNCTION_LAUNCH_ATTRIBUTES 2u
unsigned function_launch_attributes(const struct function *function,
                                    CUlaunchAttribute *ret_attributes);

/* Gives the driver's function this client's carveout. The device's context is current. */
void function_set_carveout(const struct function *function);

/* Before a launch: sets this client's carveout if another client has set its own. For most programs
 * this is a comparison. Partner of the load: function_set_carveout() of another client. */
static inline void function_prefer(const struct function *function)
{
    if (!function->known)
        return;
    int32_t set = atomic_load_explicit(&function->known->carveout, memory_order_relaxed);

    if (set != function->attributes[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT])
        function_set_carveout(function);
}

/* The kernel may print. A kernel that is known to print or allocate also has the bit of that limit:
 * 1 << CU_LIMIT_PRINTF_FIFO_SIZE, 1 << CU_LIMIT_MALLOC_HEAP_SIZE. */
#define FUNCTION_MAY_PRINT (1u << 31)

static inline bool function_may_print(const struct function *function)
{
    return function->uses & FUNCTION_MAY_PRINT;
}

/* The formats in which it may print: NULL = any. */
static inline struct print_formats *function_formats(const struct function *function)
{
    return function->module->formats;
}

/* Before a launch: from now on the client cannot set the limits that the kernel uses. */
static inline void function_note_uses(struct session *session, const struct function *function)
{
    session->limits_used[function->module->device->ordinal] |= function->uses;
}

/* Removes it from its module and from the handle table, and frees it. */
void function_end(struct session *session, struct function *function);
