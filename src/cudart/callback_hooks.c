/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a profiler would hook into libcudart. libcudart looks a flag up for each of its entry
 * points, and calls a hook only where the flag is set; ours stay zero, so no hook is ever called.
 */
#include "tables.h"

/* Counted in flags, not bytes; libcudart 13.0 insists on more than 522 and 13. */
static uint32_t api_flags[1024];
static uint32_t resource_flags[14];

static void on_api_call(uint32_t id, void *parameters)
{
}

static void get_api_flags(uint32_t **ret_flags, size_t *ret_count)
{
    *ret_flags = api_flags;
    *ret_count = sizeof(api_flags) / sizeof(api_flags[0]);
}

static void describe_stream(CUcontext context, CUstream stream, uint64_t *ret_id)
{
}

static void describe_context(CUcontext context, uint32_t *ret_id)
{
}

static void on_resource_event(uint32_t id, void *parameters)
{
}

static void get_resource_flags(uint32_t **ret_flags, size_t *ret_count)
{
    *ret_flags = resource_flags;
    *ret_count = sizeof(resource_flags) / sizeof(resource_flags[0]);
}

const table_word callback_hooks_table[7] = {
    TABLE_SIZE(7),    on_api_call,       get_api_flags,      describe_stream,
    describe_context, on_resource_event, get_resource_flags,
};
