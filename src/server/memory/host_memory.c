/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host granules: memory files mapped at the same window address in the client and here.
 */
#include "host_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach.h"
#include "blob.h"
#include "cleanup.h"
#include "clock.h"
#include "fd.h"
#include "gate.h"
#include "host_file.h"
#include "page_lock.h"
#include "quota.h"
#include "server.h"
#include "server_dispatch.h"
#include "shm.h"
#include "sock.h"
#include "suspend.h"
#include "window.h"

#define HOST_GRANULARITY 4096ull
#define HOST_ALIGNMENT (2ull << 20)

/* Bytes that a window may keep locked for later requests. Beyond this limit, memory is unlocked at
 * once (gate.h). */
#define IDLE_BYTES_MAX (1ull << 30)

/* While memory of departed clients is unlocked, other clients wait at most this long at a time. */
#define TRIM_NS (10 * NS_PER_MS)

/* Page-locked memory is missing for every process of this machine, so all clients together get at
 * most three quarters of the memory. */
static bool try_reserve(struct page_locker *locker, uint64_t size)
{
    uint64_t limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4 * 3;

    if (atomic_fetch_add(&locker->host_bytes, size) + size <= limit)
        return true;
    atomic_fetch_sub(&locker->host_bytes, size);
    return false;
}

static void trim_windows_for(struct windows *windows, uint64_t ns)
{
    uint64_t end = clock_ns() + ns;

    while (windows_trim(windows) && clock_ns() < end)
        ;
}

bool host_memory_trim_windows(struct session *session)
{
    struct gate *gate = session->server->devices.gate;
    struct exclusive_call call;

    exclusive_await_all(session, &call);
    bool can = !session->stop && gate_close(gate, "cuMemHostUnregister") == CUDA_SUCCESS;
    if (can) {
        admission_block(session->server);
        trim_windows_for(server_windows(session->server), TRIM_NS);
        admission_unblock(session->server);
        gate_open(gate);
    }
    suspend_end(session->server, &call);
    return can;
}

/* Departed clients may have memory that is not unlocked yet. */
static bool reserve_memory(struct session *session, uint64_t size)
{
    struct page_locker *locker = session->window->page_locker;
    struct windows *windows = server_windows(session->server);

    while (!try_reserve(locker, size)) {
        if (!windows_have_used(windows) || !host_memory_trim_windows(session))
            return false;
    }
    return true;
}

/* The smallest idle granule that is large enough and at most twice as large. Granules of files are
 * skipped, because files may have other users. */
static struct granule *find_idle(struct window *window, uint64_t size)
{
    struct granule *best = NULL;

    list_for_each (struct granule, granule, &window->idle, link) {
        if (!granule->of_file && granule->size >= size && granule->size <= 2 * size &&
            (!best || granule->size < best->size))
            best = granule;
    }
    return best;
}

static bool reuse_idle(struct window *window, uint64_t size, struct granule *ret_granule)
{
    struct granule *idle = find_idle(window, size);

    if (!idle)
        return false;
    list_remove(&idle->link);
    window->idle_bytes -= idle->size;
    memset((void *)(uintptr_t)idle->address, 0, idle->size);
    *ret_granule = *idle;
    free(idle);
    return true;
}

static void unmap(const struct granule *granule)
{
    /* The addresses stay reserved, so that nothing else of this process is mapped in a window. */
    mmap((void *)(uintptr_t)granule->address, granule->size, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (granule->of_file)
        host_file_unmapped(granule->address);
}

/* The client's descriptor of a file may be read-only. */
static CUresult map_file(struct granule *granule, uint64_t offset)
{
    int r = host_file_map(granule->fd, offset, granule->size, granule->address);

    fd_close(&granule->fd);
    if (r == -EACCES || r == -EPERM)
        return CUDA_ERROR_NOT_SUPPORTED;
    return r < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult map_granule(struct granule *granule, uint64_t offset)
{
    void *address = (void *)(uintptr_t)granule->address;

    if (granule->of_file)
        return map_file(granule, offset);
    return shm_map(granule->fd, granule->size, address, SHM_REPLACE, &address)
               ? CUDA_ERROR_OUT_OF_MEMORY
               : CUDA_SUCCESS;
}

static CUresult map_and_lock(const struct page_locker *locker, struct granule *granule,
                             uint64_t offset)
{
    CUresult result = map_granule(granule, offset);

    if (result != CUDA_SUCCESS)
        return result;
    result = page_lock_chunks(locker, (void *)(uintptr_t)granule->address, granule->size);
    if (result != CUDA_SUCCESS)
        unmap(granule);
    return result;
}

static CUresult take_place(struct session *session, struct granule *granule)
{
    if (granule->address)
        return window_place_at(session->window, granule->part, granule->address, granule->size);
    return window_place(session->window, granule->part, granule->size, granule->size,
                        HOST_ALIGNMENT, &granule->address);
}

static CUresult place_and_map(struct session *session, struct granule *granule, uint64_t offset)
{
    CUresult result = session_visit(session, session_device(session, 0));

    if (result == CUDA_SUCCESS)
        result = take_place(session, granule);
    if (result != CUDA_SUCCESS)
        return result;
    result = map_and_lock(session->window->page_locker, granule, offset);
    if (result != CUDA_SUCCESS)
        window_unplace(session->window, granule->address);
    return result;
}

/* Idle granules count: they are locked as well. */
static bool is_within_quota(struct session *session, uint64_t size)
{
    quota_note(session, QUOTA_HOST_MEMORY, session->window->host_bytes);
    return quota_allows(session, QUOTA_HOST_MEMORY, size);
}

bool host_memory_charge(struct session *session, uint64_t size)
{
    if (!is_within_quota(session, size))
        return false;
    if (!reserve_memory(session, size)) {
        session_log_error(session, "no more memory can be page-locked");
        return false;
    }
    session->window->host_bytes += size;
    quota_note(session, QUOTA_HOST_MEMORY, session->window->host_bytes);
    return true;
}

void host_memory_refund(struct session *session, uint64_t size)
{
    session->window->host_bytes -= size;
    atomic_fetch_sub(&session->window->page_locker->host_bytes, size);
    quota_note(session, QUOTA_HOST_MEMORY, session->window->host_bytes);
}

/* Takes over the descriptor; the granule is its file's range at `offset`. The granule lies at its
 * address, or anywhere if that is 0. */
static CUresult granule_create(struct session *session, struct granule *granule, uint64_t offset)
{
    granule->kind = GRANULE_HOST;
    granule->part = session->window->devices->count;
    if (!host_memory_charge(session, granule->size)) {
        fd_close(&granule->fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = place_and_map(session, granule, offset);
    if (result != CUDA_SUCCESS) {
        host_memory_refund(session, granule->size);
        fd_close(&granule->fd);
    }
    return result;
}

static void granule_destroy(struct window *window, struct granule *granule)
{
    page_unlock_chunks(window->page_locker, (void *)(uintptr_t)granule->address, granule->size);
    unmap(granule);
    fd_close(&granule->fd);
    window_unplace(window, granule->address);
    window->host_bytes -= granule->size;
    atomic_fetch_sub(&window->page_locker->host_bytes, granule->size);
}

static void destroy_last_idle(struct window *window)
{
    struct granule *last = container_of(window->idle.prev, struct granule, link);

    list_remove(&last->link);
    window->idle_bytes -= last->size;
    granule_destroy(window, last);
    free(last);
}

/* While a stream waits for a value no memory can be unlocked; then the window exceeds its limit. */
static bool unlock_last_idle(struct session *session)
{
    struct gate *gate = session->window->devices->gate;
    struct exclusive_call call;

    exclusive_await_all(session, &call);
    bool unlocks = !session->stop && gate_try_close(gate);
    if (unlocks) {
        destroy_last_idle(session->window);
        gate_open(gate);
    }
    suspend_end(session->server, &call);
    return unlocks;
}

/* After the client's end, its memory is unlocked when no client is at work. A granule of a file
 * cannot be reused, and its file takes space until then, so it is unlocked now. */
void host_memory_retire(struct session *session, struct granule *granule)
{
    struct window *window = session->window;

    list_append(&window->idle, &granule->link);
    window->idle_bytes += granule->size;
    if (granule->of_file)
        unlock_last_idle(session);
    while (window->idle_bytes > IDLE_BYTES_MAX && unlock_last_idle(session))
        ;
    quota_note(session, QUOTA_HOST_MEMORY, window->host_bytes);
}

void host_memory_drop_idle(struct window *window)
{
    list_for_each_safe (struct granule, granule, &window->idle, link) {
        list_remove(&granule->link);
        granule_destroy(window, granule);
        free(granule);
    }
    window->idle_bytes = 0;
}

void host_memory_close_idle(struct window *window)
{
    list_for_each (struct granule, granule, &window->idle, link)
        fd_close(&granule->fd);
}

static CUresult send_descriptor(struct session *session, const struct granule *granule)
{
    struct socket_message message = {.kind = SOCKET_HOST_GRANULE, .value = granule->address};

    return sock_send(session->socket, &message, sizeof(message), &granule->fd, 1)
               ? CUDA_ERROR_MPS_RPC_FAILURE
               : CUDA_SUCCESS;
}

static bool check_size(struct session *session, const char *call, uint64_t size)
{
    if (size && size % HOST_GRANULARITY == 0 && size <= WINDOW_HOST_SPAN)
        return true;
    session_log_error(session, "%s: size %llu is not a multiple of %llu", call,
                      (unsigned long long)size, HOST_GRANULARITY);
    return false;
}

/* Without memory for its description the granule is lost. */
static void keep_idle(struct session *session, const struct granule *granule)
{
    struct granule *kept = malloc(sizeof(*kept));

    if (!kept)
        return;
    *kept = *granule;
    host_memory_retire(session, kept);
}

static CUresult allow_access(struct session *session, const struct granule *granule)
{
    CUresult result = memory_allow(session, granule);

    if (result != CUDA_SUCCESS)
        keep_idle(session, granule);
    return result;
}

static CUresult create_and_allow(struct session *session, struct granule *granule, uint64_t offset)
{
    CUresult result = granule_create(session, granule, offset);

    return result != CUDA_SUCCESS ? result : allow_access(session, granule);
}

static CUresult hand_out(struct session *session, const struct granule *granule)
{
    CUresult result = allow_access(session, granule);

    return result != CUDA_SUCCESS ? result : send_descriptor(session, granule);
}

CUresult serve_fnHostGranuleCreate(struct session *session,
                                   const struct wire_fnHostGranuleCreate *in,
                                   struct wire_fnHostGranuleCreate_reply *ret_out)
{
    struct granule granule;

    if (!check_size(session, "fnHostGranuleCreate", in->size))
        return CUDA_ERROR_INVALID_VALUE;
    if (reuse_idle(session->window, in->size, &granule)) {
        ret_out->address = granule.address;
        return hand_out(session, &granule);
    }
    ret_out->populate = session->window->page_locker->populates;
    return is_within_quota(session, in->size) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Missing pages would be charged to this process. */
static bool check_memory(struct session *session, uint64_t size, int fd)
{
    bool populates = session->window->page_locker->populates;

    if (!shm_check(fd, size) && (!populates || shm_is_populated(fd, size)))
        return true;
    session_log_error(session, "fnHostGranuleBring: the descriptor is not memory with %llu bytes",
                      (unsigned long long)size);
    return false;
}

CUresult serve_fnHostGranuleBring(struct session *session, const struct wire_fnHostGranuleBring *in,
                                  struct wire_fnHostGranuleBring_reply *ret_out)
{
    struct granule granule = {.size = in->size};
    _cleanup_fd_ int fd = -1;
    CUresult result = blob_take_fd(session, in->blob, &fd);

    if (result != CUDA_SUCCESS)
        return result;
    if (!check_size(session, "fnHostGranuleBring", in->size) ||
        !check_memory(session, in->size, fd))
        return CUDA_ERROR_INVALID_VALUE;
    granule.fd = fd_steal(&fd);
    result = create_and_allow(session, &granule, 0);
    if (result == CUDA_SUCCESS)
        ret_out->address = granule.address;
    return result;
}

static bool check_place(struct session *session, const struct wire_fnHostGranuleAdopt *in, int fd)
{
    if (in->address && in->address % HOST_ALIGNMENT == 0 && !shm_check(fd, in->size))
        return true;
    session_log_error(
        session, "fnHostGranuleAdopt: %#llx is not a valid place, or its descriptor is not memory",
        (unsigned long long)in->address);
    return false;
}

CUresult serve_fnHostGranuleAdopt(struct session *session, const struct wire_fnHostGranuleAdopt *in)
{
    struct granule granule = {.address = in->address, .size = in->size};
    _cleanup_fd_ int fd = -1;
    CUresult result = blob_take_fd(session, in->blob, &fd);

    if (result != CUDA_SUCCESS)
        return result;
    if (!check_size(session, "fnHostGranuleAdopt", in->size) || !check_place(session, in, fd))
        return CUDA_ERROR_INVALID_VALUE;
    granule.fd = fd_steal(&fd);
    return create_and_allow(session, &granule, 0);
}

static CUresult check_file(struct session *session, const struct wire_fnHostFileMap *in, int fd)
{
    int r = in->address % HOST_ALIGNMENT ? -EINVAL : host_file_check(fd, in->offset, in->size);

    if (r == 0)
        return CUDA_SUCCESS;
    if (r == -EOPNOTSUPP)
        return CUDA_ERROR_NOT_SUPPORTED;
    session_log_error(session,
                      "fnHostFileMap: %llu bytes at %llu are not in the file, or not whole pages",
                      (unsigned long long)in->size, (unsigned long long)in->offset);
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult serve_fnHostFileMap(struct session *session, const struct wire_fnHostFileMap *in,
                             struct wire_fnHostFileMap_reply *ret_out)
{
    struct granule granule = {.address = in->address, .size = in->size, .of_file = true};
    _cleanup_fd_ int fd = -1;
    CUresult result = blob_take_fd(session, in->blob, &fd);

    if (result != CUDA_SUCCESS)
        return result;
    if (!check_size(session, "fnHostFileMap", in->size))
        return CUDA_ERROR_INVALID_VALUE;
    result = check_file(session, in, fd);
    if (result != CUDA_SUCCESS)
        return result;
    granule.fd = fd_steal(&fd);
    result = create_and_allow(session, &granule, in->offset);
    if (result == CUDA_SUCCESS)
        ret_out->address = granule.address;
    return result;
}
