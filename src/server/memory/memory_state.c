/* SPDX-License-Identifier: Apache-2.0 */
/* The memory subsystem's part of the server and of a session. */
#include "memory_state.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "file_guard.h"
#include "swap_transfer.h"

int server_memory_init(struct server *server, const struct page_lock_options *options)
{
    struct server_memory *memory = calloc(1, sizeof(*memory));

    if (!memory)
        return -ENOMEM;
    file_guard_init();
    server->memory = memory;
    page_locker_init(&memory->page_locker, server->devices.gate, options);
    windows_init(&memory->windows, &server->devices, &memory->page_locker);
    reserve_area_init(&memory->reserve_area);
    swap_pool_init(&memory->swap_pool, &server->devices, &memory->reserve_area);
    kept_copies_init(&memory->kept_copies);
    chunk_hasher_init(&memory->hasher, &memory->page_locker);
    swap_staging_init(&memory->swap_staging, &memory->page_locker);
    joint_memory_init(&memory->joint);
    pthread_mutex_init(&memory->limits_lock, NULL);
    memory_add_reclaimer(server, swap_writing_reclaim);
    return 0;
}

void server_memory_load_kernels(struct server *server)
{
    chunk_hasher_load(&server->memory->hasher, &server->devices);
}

void server_memory_fini(struct server *server)
{
    reserve_area_fini(&server->memory->reserve_area);
    free(server->memory);
}

struct windows *server_windows(struct server *server)
{
    return &server->memory->windows;
}

void memory_add_reclaimer(struct server *server, memory_reclaimer *reclaim)
{
    assert(server->memory->reclaimer_count < MEMORY_RECLAIMERS);
    server->memory->reclaimers[server->memory->reclaimer_count++] = reclaim;
}

void memory_set_guard(struct server *server, memory_guard *is_awaited)
{
    server->memory->is_awaited = is_awaited;
}

void memory_set_room_maker(struct server *server, memory_room_maker *make_room)
{
    server->memory->make_room = make_room;
}

bool memory_is_awaited(struct session *session, const char *call, uint64_t address, uint64_t size)
{
    memory_guard *is_awaited = session->server->memory->is_awaited;

    if (!is_awaited || !is_awaited(session, address, size))
        return false;
    session_log_error(session, "%s: a stream waits for a value in the %llu bytes at %#llx", call,
                      (unsigned long long)size, (unsigned long long)address);
    return true;
}

int session_memory_init(struct session *session)
{
    struct session_memory *memory = calloc(1, sizeof(*memory));

    if (!memory)
        return -ENOMEM;
    ranges_init(&memory->extents);
    ranges_init(&memory->reservations);
    ranges_init(&memory->holdings);
    ranges_init(&memory->mappings);
    list_init(&memory->created);
    list_init(&memory->imports);
    session->memory = memory;
    return 0;
}

void session_memory_fini(struct session *session)
{
    if (session->memory)
        joint_memory_leave(session);
    free(session->memory);
}

void memory_usage(const struct session *session, unsigned device, uint64_t *ret_used,
                  uint64_t *ret_peak)
{
    *ret_used = session->memory->device[device].used;
    *ret_peak = session->memory->device[device].peak;
}

uint64_t memory_refusals(const struct session *session)
{
    return session->memory->refused;
}
