/* SPDX-License-Identifier: Apache-2.0 */
#include "managed_area.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cleanup.h"
#include "client_log.h"
#include "client_managed.h"
#include "client_peer_access.h"
#include "deferred_signals.h"
#include "environment.h"
#include "fd.h"
#include "granule.h"
#include "managed_chunks.h"
#include "managed_exchange.h"
#include "page_watch.h"
#include "ranges.h"
#include "shm.h"

#define GRANULARITY (UINT64_C(2) << 20)

struct area {
    uint64_t host;
    int host_fd;
};

static struct {
    pthread_mutex_t lock;
    struct ranges areas;                    /* struct area */
    struct heap heaps[ATTACH_DEVICES_MAX];  /* by ordinal */
    struct heap hosted[ATTACH_DEVICES_MAX]; /* of areas that began on the host */
    struct ranges hosts; /* granules of host memory for views; the value is the descriptor plus 1 */
    struct heap views;   /* of them */
    int watch;           /* -errno: it cannot be watched; 0 = it is not to be */
    unsigned watch_got;  /* WATCH_... */
    bool explained;
    bool used; /* by this process, or the one that it was forked from */
} memory;

/* ---- an area ---- */

static CUresult map_view(uint64_t address, uint64_t size, int fd)
{
    void *mapped;

    if (address < client->window_base || address + size > client->host_base ||
        shm_map(fd, size, (void *)(uintptr_t)address, SHM_REPLACE, &mapped) < 0)
        return CUDA_ERROR_MAP_FAILED;
    madvise(mapped, size, MADV_DONTFORK);
    return page_watch_add(memory.watch, address, size) ? CUDA_ERROR_MAP_FAILED : CUDA_SUCCESS;
}

/* The addresses stay reserved: nothing else of the process may lie there. */
static void unmap_view(uint64_t address, uint64_t size)
{
    void *place = (void *)(uintptr_t)address;

    page_watch_remove(memory.watch, address, size);
    mmap(place, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    madvise(place, size, MADV_DONTFORK);
}

static void end_host(struct area *area, uint64_t size)
{
    host_granules.release(area->host, size);
    fd_close(&area->host_fd);
    free(area);
}

static CUresult enter_area(uint64_t address, uint64_t size, struct area *area)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&memory.lock);

    return ranges_add(&memory.areas, address, size, area) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult add_host(uint64_t address, uint64_t size)
{
    struct area *area = malloc(sizeof(*area));
    CUresult result;

    if (!area)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = host_granules.create(0, size, &area->host, &area->host_fd);
    if (result != CUDA_SUCCESS) {
        free(area);
        return result;
    }
    result = map_view(address, size, area->host_fd);
    if (result == CUDA_SUCCESS)
        result = enter_area(address, size, area);
    if (result != CUDA_SUCCESS) {
        unmap_view(address, size);
        end_host(area, size);
    }
    return result;
}

static struct area *leave_area(uint64_t address)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&memory.lock);
    struct range removed;

    return ranges_remove(&memory.areas, address, &removed) ? NULL : removed.value;
}

static void drop_host(uint64_t address, uint64_t size)
{
    unmap_view(address, size);
    end_host(leave_area(address), size);
}

/* The heap of the areas in that part of the window, whose numbers are not the program's. */
static struct heap *heap_of(struct heap *heaps, uint32_t part)
{
    struct heap *heap = heaps;

    while (heap->part != part)
        heap++;
    return heap;
}

/* Gives back freed memory of either kind. */
static void trim_all(void)
{
    area_trim();
    for (int i = 0; i < client->device_count; i++)
        heap_trim(memory_device_heap(&client->devices[i]), 0);
}

/* The chunks have the descriptors. */
static CUresult create_from(struct heap *heap, bool hosted, uint64_t size, uint64_t *ret_address,
                            int *ret_fd)
{
    CUresult result = chunks_create(heap, hosted, size, trim_all, ret_address);

    *ret_fd = -1;
    if (result != CUDA_SUCCESS)
        return result;
    result = add_host(*ret_address, size);
    if (result != CUDA_SUCCESS)
        chunks_release(*ret_address, size);
    return result;
}

static CUresult area_create(uint32_t part, uint64_t size, uint64_t *ret_address, int *ret_fd)
{
    return create_from(heap_of(memory.heaps, part), false, size, ret_address, ret_fd);
}

static CUresult hosted_create(uint32_t part, uint64_t size, uint64_t *ret_address, int *ret_fd)
{
    return create_from(heap_of(memory.hosted, part), true, size, ret_address, ret_fd);
}

static void area_release(uint64_t address, uint64_t size)
{
    drop_host(address, size);
    chunks_release(address, size);
}

static const struct heap_source areas = {area_create, area_release};
static const struct heap_source hosted_areas = {hosted_create, area_release};

uint64_t area_host_address(uint64_t address)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&memory.lock);
    const struct range *range = ranges_find(&memory.areas, address);

    return range ? ((const struct area *)range->value)->host + (address - range->start) : 0;
}

void area_trim(void)
{
    for (int i = 0; i < client->device_count; i++) {
        heap_trim(&memory.heaps[i], 0);
        heap_trim(&memory.hosted[i], 0);
    }
}

/* ---- views ---- */

static int enter_host(uint64_t address, uint64_t size, int fd)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&memory.lock);

    return ranges_add(&memory.hosts, address, size, (void *)(uintptr_t)((unsigned)fd + 1));
}

static void view_granule_release(uint64_t address, uint64_t size)
{
    deferring_mutex_lock(&memory.lock);
    ranges_remove(&memory.hosts, address, NULL);
    deferring_mutex_unlock(&memory.lock);
    host_granules.release(address, size);
}

static CUresult view_granule_create(uint32_t part, uint64_t size, uint64_t *ret_address,
                                    int *ret_fd)
{
    uint64_t address;
    int fd;
    CUresult result = host_granules.create(part, size, &address, &fd);

    if (result != CUDA_SUCCESS)
        return result;
    if (enter_host(address, size, fd)) {
        host_granules.release(address, size);
        fd_close(&fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_address = address;
    *ret_fd = fd;
    return CUDA_SUCCESS;
}

static const struct heap_source views = {view_granule_create, view_granule_release};

static int map_of_host(uint64_t host, uint64_t address, uint64_t size)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&memory.lock);
    const struct range *range = ranges_find(&memory.hosts, host);
    int fd = (int)((unsigned)(uintptr_t)range->value - 1);
    void *mapped = mmap((void *)(uintptr_t)address, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED, fd, (off_t)(host - range->start));

    if (mapped == MAP_FAILED)
        return -errno;
    madvise(mapped, size, MADV_DONTFORK);
    return page_watch_add(memory.watch, address, size);
}

int view_create(uint64_t address, uint64_t size, uint64_t *ret_host)
{
    struct allocation *entry = calloc(1, sizeof(*entry));
    int error = -ENOMEM;

    if (entry) {
        entry->size = size;
        if (heap_take(&memory.views, entry) == CUDA_SUCCESS)
            error = map_of_host(entry->address, address, size);
        if (!error) {
            *ret_host = entry->address;
            return 0;
        }
        heap_give(&memory.views, entry->address);
    }
    free(entry);
    return error;
}

void view_destroy(uint64_t address, uint64_t size, uint64_t host)
{
    page_watch_remove(memory.watch, address, size);
    free(heap_give(&memory.views, host));
    heap_trim(&memory.views, 0);
}

/* ---- all of them ---- */

/* An allocation is memory of one device, so the others have to reach that. Where they do not, it
 * stays with the host, which all of them reach. */
static int open_watch(void)
{
    enum managed_place place = environment_managed_place();

    return place == MANAGED_HOST || !peer_all_reach()
               ? 0
               : page_watch_open(place == MANAGED_DEVICE ? WATCH_THREADS_ONLY : 0,
                                 &memory.watch_got);
}

/* Most of it is never used, and zeros written over zeros would cost a page fault for each page,
 * when every program starts. */
static void clear_memory(void)
{
    if (memory.used)
        memset(&memory, 0, sizeof(memory));
    memory.used = true;
}

void area_init(void)
{
    clear_memory();
    pthread_mutex_init(&memory.lock, NULL);
    exchange_init();
    memory.watch = open_watch();
    for (int i = 0; i < client->device_count; i++) {
        heap_init(&memory.heaps[i], &areas, client->devices[i].part, GRANULARITY);
        heap_init(&memory.hosted[i], &hosted_areas, client->devices[i].part, GRANULARITY);
    }
    heap_init(&memory.views, &views, 0, GRANULARITY);
}

bool area_is_possible(void)
{
    return memory.watch > 0;
}

static void explain_place(void)
{
    if (memory.watch < 0)
        client_log(
            "managed memory stays with the host, where kernels reach it slowly: %s "
            "(userfaultfd). vm.unprivileged_userfaultfd=1 allows that to all users, the mode of "
            "/dev/userfaultfd to some, FUNNEL_MANAGED=device does with less, and "
            "FUNNEL_MANAGED=host ends this message",
            strerror(-memory.watch));
    else if (memory.watch)
        client_log("managed memory moves by userfaultfd%s%s",
                   memory.watch_got & WATCH_ALL_WRITABLE
                       ? "; without its write protection, what the program has only read is copied "
                         "to the device again"
                       : "",
                   memory.watch_got & WATCH_THREADS_ONLY
                       ? "; a system call on pages that are on the device fails with EFAULT"
                       : "");
    else if (environment_managed_place() != MANAGED_HOST)
        client_log("managed memory stays with the host, where kernels reach it slowly: there are "
                   "visible devices that cannot reach each other's memory; with one of them in "
                   "CUDA_VISIBLE_DEVICES it moves");
}

void area_explain(void)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&memory.lock);

    if (!memory.explained)
        explain_place();
    memory.explained = true;
}

struct heap *area_heap(const struct device *device)
{
    return &memory.heaps[device->ordinal];
}

struct heap *area_hosted_heap(const struct device *device)
{
    return &memory.hosted[device->ordinal];
}

struct heap *area_heap_of(uint64_t address)
{
    const struct device *device = memory_device_of(address);
    struct allocation found;

    return heap_find(area_heap(device), address, &found) ? area_heap(device)
                                                         : area_hosted_heap(device);
}

int area_watch(void)
{
    return memory.watch;
}

static CUresult replay_area(const struct heap *heap, uint64_t address, uint64_t size, int fd)
{
    const struct range *range = ranges_find(&memory.areas, address);
    const struct area *area = range->value;
    CUresult result = chunks_replay(heap, address, size);

    return result != CUDA_SUCCESS ? result : granule_replay_host(area->host, size, area->host_fd);
}

static CUresult replay_view(const struct heap *heap, uint64_t address, uint64_t size, int fd)
{
    return granule_replay_host(address, size, fd);
}

bool managed_is_whole(void)
{
    return exchange_is_whole();
}

void managed_give_up(void)
{
    exchange_give_up();
}

CUresult area_replay(void)
{
    CUresult result = heap_for_each_granule(&memory.views, replay_view);

    for (int i = 0; i < client->device_count && result == CUDA_SUCCESS; i++) {
        result = heap_for_each_granule(&memory.heaps[i], replay_area);
        if (result == CUDA_SUCCESS)
            result = heap_for_each_granule(&memory.hosted[i], replay_area);
    }
    return result;
}

/* ---- fork ---- */

void area_before_fork(void)
{
    exchange_before_fork();
    for (int i = 0; i < client->device_count; i++) {
        lock_take(&memory.heaps[i].lock);
        lock_take(&memory.hosted[i].lock);
    }
    lock_take(&memory.views.lock);
    deferring_mutex_lock(&memory.lock);
}

void area_after_fork_in_parent(void)
{
    deferring_mutex_unlock(&memory.lock);
    lock_give(&memory.views.lock);
    for (int i = client->device_count; i-- > 0;) {
        lock_give(&memory.hosted[i].lock);
        lock_give(&memory.heaps[i].lock);
    }
    exchange_after_fork_in_parent();
}

void area_after_fork_in_child(void)
{
    for (size_t i = 0; i < memory.areas.count; i++) {
        struct area *area = memory.areas.sorted[i].value;

        fd_close(&area->host_fd);
    }
    exchange_after_fork_in_child();
    for (int i = 0; i < client->device_count; i++) {
        heap_after_fork(&memory.heaps[i]);
        heap_after_fork(&memory.hosted[i]);
    }
    heap_after_fork(&memory.views);
    if (memory.watch > 0)
        fd_close(&memory.watch);
}
