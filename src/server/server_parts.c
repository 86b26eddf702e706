/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the parts of the server from the lowest layer up, as FUNNEL_OFF says. */
#include "server_parts.h"

#include "accounting.h"
#include "array.h"
#include "copy.h"
#include "device_printf.h"
#include "feature.h"
#include "graph.h"
#include "ipc_share.h"
#include "launch.h"
#include "memory.h"
#include "page_lock.h"
#include "server_life.h"
#include "server_module.h"
#include "server_reference.h"
#include "sm_share.h"
#include "stream.h"
#include "swapping.h"
#include "switch.h"

/* The software GPU needs no populated pages, unless a switch asks for them. */
static bool populates(const struct server *server)
{
    return server->life->driver_kind != DRIVER_SOFT || switch_is_on("FUNNEL_SOFT_POPULATES");
}

static int init_memory(struct server *server)
{
    const struct page_lock_options options = {
        .whole = feature_is_off(FEATURE_LOCK_CHUNKS),
        .populates = populates(server),
    };

    int error = server_memory_init(server, &options);

    if (!error && !feature_is_off(FEATURE_SWAP_HASHES))
        server_memory_load_kernels(server);
    return error;
}

/* The software GPU has no exclusive calls, unless FUNNEL_SOFT_STALLS asks for them. */
static bool has_exclusive_calls(const struct server *server)
{
    return !feature_is_off(FEATURE_IDLE_POINT) &&
           (server->life->driver_kind != DRIVER_SOFT || switch_is_on("FUNNEL_SOFT_STALLS"));
}

static int init_streams(struct server *server)
{
    int error = server_streams_init(server);

    if (!error && !has_exclusive_calls(server))
        server->idle.ignored = true;
    return error;
}

static int init_modules(struct server *server)
{
    int error = server_modules_init(server, !feature_is_off(FEATURE_MODULE_CACHE));

    if (error)
        return error;
    module_cache_set_reader(server_module_cache(server), server->life->image_reader);
    module_cache_set_compiler(server_module_cache(server), server->life->ptx_compiler);
    return 0;
}

static int init_copies(struct server *server)
{
    const struct copy_options options = {
        .no_copy_load = server->life->no_copy_load,
        .no_shared_stream = feature_is_off(FEATURE_SHARED_COPY_STREAM),
        .no_copy_kernel = feature_is_off(FEATURE_COPY_KERNEL),
        .no_address_scan = feature_is_off(FEATURE_VARIABLE_MOVES),
    };

    return server_copies_init(server, &options);
}

static int init_launch(struct server *server)
{
    const struct launch_options options = {
        .no_batching = feature_is_off(FEATURE_LAUNCH_BATCHING),
        .no_fence_kernel = feature_is_off(FEATURE_FENCE_KERNEL),
        .no_fence_counter = feature_is_off(FEATURE_FENCE_COUNTER),
        .no_context_hold = feature_is_off(FEATURE_CONTEXT_HOLD),
    };

    return server_launch_init(server, &options);
}

/* In the order of the layers. */
static const struct {
    int (*init)(struct server *server);
    void (*fini)(struct server *server);
} parts[] = {
    {server_ipc_init, server_ipc_fini},
    {init_memory, server_memory_fini},
    {server_partitions_init, server_partitions_fini},
    {init_modules, server_modules_fini},
    {init_streams, server_streams_fini},
    {server_printf_init, server_printf_fini},
    {init_copies, server_copies_fini},
    {server_arrays_init, server_arrays_fini},
    {init_launch, server_launch_fini},
    {server_graphs_init, server_graphs_fini},
    {server_references_init, server_references_fini},
    {server_accounting_init, server_accounting_fini},
    {server_swapping_init, server_swapping_fini},
};

#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))

int server_parts_init(struct server *server)
{
    int error = 0;

    for (unsigned i = 0; i < PART_COUNT && !error; i++)
        error = parts[i].init(server);
    return error;
}

void server_parts_fini(struct server *server)
{
    for (unsigned i = PART_COUNT; i-- > 0;)
        parts[i].fini(server);
}
