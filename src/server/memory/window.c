/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates and recycles windows. The addresses of devices are reserved with the driver, those of the
 * host with mmap. The GPU-visible region (region.h) comes first in the host part.
 */
#include "window.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cleanup.h"
#include "fd.h"
#include "gate.h"
#include "host_memory.h"
#include "log.h"
#include "page_lock.h"
#include "region.h"
#include "shm.h"

#define WINDOW_ALIGNMENT (4ull << 30)

/* The number of windows whose memory is created in advance. */
#define WINDOWS_WARM 2u

/* Page-locked memory of departed clients: half a gigabyte is the budget, and two gigabytes the
 * limit, where other clients always have long work. */
#define WINDOWS_USED 32u
#define WINDOWS_USED_MAX 128u

static uint64_t window_size(const struct devices *devices)
{
    uint64_t size = devices->count * devices->stride + WINDOW_HOST_SPAN;

    return (size + WINDOW_ALIGNMENT - 1) / WINDOW_ALIGNMENT * WINDOW_ALIGNMENT;
}

unsigned windows_limit(const struct devices *devices)
{
    uint64_t limit = (WINDOW_END - WINDOW_FIRST) / window_size(devices);

    return limit < WINDOWS_MAX ? (unsigned)limit : WINDOWS_MAX;
}

/* Clients of the previous server may claim their old windows. So each server begins at another
 * place, and its first clients do not take those. */
static unsigned first_place(const struct devices *devices)
{
    return (unsigned)getpid() * 2654435761u / 64 % windows_limit(devices);
}

void windows_init(struct windows *windows, const struct devices *devices,
                  struct page_locker *page_locker)
{
    *windows = (struct windows){
        .devices = devices, .page_locker = page_locker, .next_place = first_place(devices)};
    pthread_mutex_init(&windows->lock, NULL);
    list_init(&windows->idle);
    list_init(&windows->used);
}

void windows_set_claims(struct windows *windows, bool (*is_claimed)(void *context, uint64_t base),
                        void *claims)
{
    windows->is_claimed = is_claimed;
    windows->claims = claims;
}

unsigned window_number(const struct window *window)
{
    return (unsigned)((window->base - WINDOW_FIRST) / window_size(window->devices));
}

uint64_t window_part_start(const struct window *window, unsigned index)
{
    if (index == window->devices->count)
        return window->host_base + GPU_REGION_SIZE;
    return window->base + index * window->devices->stride;
}

uint64_t window_part_end(const struct window *window, unsigned index)
{
    if (index == window->devices->count)
        return window->host_base + WINDOW_HOST_SPAN;
    return window->base + (index + 1) * window->devices->stride;
}

_Atomic uint32_t *window_fence(const struct window *window, uint32_t word)
{
    return (_Atomic uint32_t *)(uintptr_t)(window->host_base + GPU_REGION_FENCE_OFFSET) + word;
}

_Atomic uint32_t *window_host_wait_word(const struct window *window, uint32_t word)
{
    return (_Atomic uint32_t *)(uintptr_t)(window->host_base + GPU_REGION_HOST_WAIT_OFFSET) + word;
}

/* The driver also reserves the addresses of the devices in this process, so it must get them before
 * mmap. */
static CUresult reserve_devices(const struct window *window)
{
    uint64_t size = window->devices->count * window->devices->stride;
    CUdeviceptr got = 0;
    CUresult result = driver.cuMemAddressReserve(&got, size, 0, window->base, 0);

    if (result == CUDA_SUCCESS && got != window->base) {
        driver.cuMemAddressFree(got, size);
        return CUDA_ERROR_MAP_FAILED;
    }
    return result;
}

static CUresult reserve_host(const struct window *window)
{
    void *wanted = (void *)(uintptr_t)window->host_base;
    void *got = mmap(wanted, WINDOW_HOST_SPAN, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (got == MAP_FAILED)
        return CUDA_ERROR_MAP_FAILED;
    if (got != wanted) {
        munmap(got, WINDOW_HOST_SPAN);
        return CUDA_ERROR_MAP_FAILED;
    }
    return CUDA_SUCCESS;
}

/* The addresses stay reserved. */
static void unmap_gpu_region(struct window *window)
{
    mmap((void *)(uintptr_t)window->host_base, GPU_REGION_SIZE, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    fd_close(&window->gpu_fd);
}

static CUresult map_gpu_region(struct window *window)
{
    void *address = (void *)(uintptr_t)window->host_base;

    if (shm_create("funnel-gpu", GPU_REGION_SIZE, &window->gpu_fd))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = CUDA_ERROR_MAP_FAILED;
    if (!shm_map(window->gpu_fd, GPU_REGION_SIZE, address, SHM_REPLACE, &address))
        result = page_lock(window->page_locker, address, GPU_REGION_SIZE);
    if (result != CUDA_SUCCESS)
        unmap_gpu_region(window);
    return result;
}

static void release_addresses(struct window *window)
{
    driver.cuMemAddressFree(window->base, window->devices->count * window->devices->stride);
    munmap((void *)(uintptr_t)window->host_base, WINDOW_HOST_SPAN);
    fd_close(&window->gpu_fd);
}

/* Device i has part i, unless its client has moved to another device (fnDevicePart). */
static void reset_parts(struct window *window)
{
    for (unsigned i = 0; i < ATTACH_DEVICES_MAX; i++)
        window->part_of[i] = i;
}

static CUresult window_create(const struct windows *windows, uint64_t base,
                              struct window **ret_window)
{
    const struct devices *devices = windows->devices;
    struct window *window = calloc(1, sizeof(*window));

    if (!window)
        return CUDA_ERROR_OUT_OF_MEMORY;
    window->devices = devices;
    window->page_locker = windows->page_locker;
    window->base = base;
    window->host_base = base + devices->count * devices->stride;
    window->gpu_fd = -1;
    reset_parts(window);
    list_init(&window->link);
    list_init(&window->idle);
    ranges_init(&window->used);

    CUresult result = reserve_devices(window);
    if (result == CUDA_SUCCESS) {
        result = reserve_host(window);
        if (result == CUDA_SUCCESS)
            result = map_gpu_region(window);
        if (result != CUDA_SUCCESS)
            release_addresses(window);
    }
    if (result != CUDA_SUCCESS) {
        free(window);
        return result;
    }
    *ret_window = window;
    return CUDA_SUCCESS;
}

static struct window *pop_window(struct windows *windows, struct list *from)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&windows->lock);
    struct window *window = list_first(from, struct window, link);

    if (window)
        list_remove(&window->link);
    return window;
}

static bool is_claimed(const struct windows *windows, uint64_t base)
{
    return windows->is_claimed && windows->is_claimed(windows->claims, base);
}

/* Among those that no client of another server has. */
static struct window *pop_idle(struct windows *windows)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&windows->lock);

    list_for_each (struct window, window, &windows->idle, link) {
        if (is_claimed(windows, window->base))
            continue;
        list_remove(&window->link);
        return window;
    }
    return NULL;
}

static bool claim_place_locked(struct windows *windows, unsigned place)
{
    uint64_t bit = 1ull << place % 64;
    bool is_new = !(windows->created[place / 64] & bit);

    windows->created[place / 64] |= bit;
    return is_new;
}

/* 0 = there is none. */
static uint64_t next_base(struct windows *windows, bool takes_claimed)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&windows->lock);
    unsigned limit = windows_limit(windows->devices);

    for (unsigned i = 0; i < limit; i++) {
        unsigned place = (windows->next_place + i) % limit;
        uint64_t base = WINDOW_FIRST + place * window_size(windows->devices);
        if ((takes_claimed || !is_claimed(windows, base)) && claim_place_locked(windows, place)) {
            windows->next_place = (place + 1) % limit;
            return base;
        }
    }
    return 0;
}

/* Unlocks and unmaps everything page-locked in the window. */
static void release_memory(struct window *window)
{
    host_memory_drop_idle(window);
    if (window->gpu_fd < 0)
        return;
    page_unlock((void *)(uintptr_t)window->host_base);
    unmap_gpu_region(window);
}

static void put_idle(struct windows *windows, struct window *window)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&windows->lock);

    if (window->gpu_fd >= 0)
        list_insert(&windows->idle, &window->link);
    else
        list_append(&windows->idle, &window->link);
}

/* An idle window has no memory, or memory that no client has seen. */
static CUresult take_idle(struct windows *windows, struct window *idle, struct window **ret_window)
{
    CUresult result = idle->gpu_fd < 0 ? map_gpu_region(idle) : CUDA_SUCCESS;

    if (result == CUDA_SUCCESS)
        *ret_window = idle;
    else
        put_idle(windows, idle);
    return result;
}

static unsigned count_used(struct windows *windows)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&windows->lock);
    unsigned count = 0;

    list_for_each (struct window, window, &windows->used, link)
        count++;
    return count;
}

static CUresult take_new(struct windows *windows, bool takes_claimed, struct window **ret_window)
{
    for (;;) {
        uint64_t base = next_base(windows, takes_claimed);
        if (!base)
            return count_used(windows) ? CUDA_ERROR_NOT_READY : CUDA_ERROR_MPS_MAX_CLIENTS_REACHED;
        CUresult result = window_create(windows, base, ret_window);
        if (result != CUDA_ERROR_MAP_FAILED)
            return result;
        log_line("Window %#llx is taken in the server, trying the next", (unsigned long long)base);
    }
}

CUresult windows_take(struct windows *windows, struct window **ret_window)
{
    struct window *idle = pop_idle(windows);
    CUresult result;

    if (idle)
        return take_idle(windows, idle, ret_window);
    if (count_used(windows) >= WINDOWS_USED_MAX)
        return CUDA_ERROR_NOT_READY;
    result = take_new(windows, false, ret_window);
    if (result != CUDA_ERROR_MPS_MAX_CLIENTS_REACHED)
        return result;
    idle = pop_window(windows, &windows->idle);
    return idle ? take_idle(windows, idle, ret_window) : take_new(windows, true, ret_window);
}

static struct window *find_at_locked(const struct list *list, uint64_t base)
{
    list_for_each (struct window, window, list, link) {
        if (window->base == base)
            return window;
    }
    return NULL;
}

static struct window *pop_idle_at(struct windows *windows, uint64_t base)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&windows->lock);
    struct window *window = find_at_locked(&windows->idle, base);

    if (window)
        list_remove(&window->link);
    return window;
}

static bool is_used_at(struct windows *windows, uint64_t base)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&windows->lock);

    return find_at_locked(&windows->used, base);
}

static bool claim_base(struct windows *windows, uint64_t base)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&windows->lock);
    uint64_t size = window_size(windows->devices), offset = base - WINDOW_FIRST;

    return base >= WINDOW_FIRST && offset % size == 0 &&
           offset / size < windows_limit(windows->devices) &&
           claim_place_locked(windows, (unsigned)(offset / size));
}

CUresult windows_take_at(struct windows *windows, uint64_t base, struct window **ret_window)
{
    struct window *window = pop_idle_at(windows, base);

    if (window)
        return take_idle(windows, window, ret_window);
    if (is_used_at(windows, base))
        return CUDA_ERROR_NOT_READY;
    if (!claim_base(windows, base))
        return CUDA_ERROR_MAP_FAILED;
    return window_create(windows, base, ret_window);
}

void windows_put_back(struct windows *windows, struct window *window)
{
    if (!window)
        return;
    host_memory_close_idle(window);
    window->is_divided = false;
    reset_parts(window);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&windows->lock);
    list_append(&windows->used, &window->link);
}

bool windows_have_used(struct windows *windows)
{
    return count_used(windows) > 0;
}

bool windows_are_over_budget(struct windows *windows)
{
    return count_used(windows) > WINDOWS_USED;
}

bool windows_trim(struct windows *windows)
{
    struct window *used = pop_window(windows, &windows->used);

    if (!used)
        return false;
    release_memory(used);
    put_idle(windows, used);
    return true;
}

static unsigned count_warm(struct windows *windows)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&windows->lock);
    unsigned count = 0;

    list_for_each (struct window, window, &windows->idle, link)
        count += window->gpu_fd >= 0;
    return count;
}

static struct window *pop_without_memory(struct windows *windows)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&windows->lock);

    list_for_each (struct window, window, &windows->idle, link) {
        if (window->gpu_fd >= 0)
            continue;
        list_remove(&window->link);
        return window;
    }
    return NULL;
}

bool windows_warm(struct windows *windows)
{
    struct window *window = count_warm(windows) < WINDOWS_WARM ? pop_without_memory(windows) : NULL;

    if (!window)
        return false;
    CUresult result = map_gpu_region(window);
    put_idle(windows, window);
    return result == CUDA_SUCCESS;
}

CUresult window_place(struct window *window, unsigned part, uint64_t size, uint64_t capacity,
                      uint64_t alignment, uint64_t *ret_address)
{
    uint64_t address;

    if (ranges_gap(&window->used, window_part_start(window, part), window_part_end(window, part),
                   capacity, alignment, &address) ||
        ranges_add(&window->used, address, size, window))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_address = address;
    return CUDA_SUCCESS;
}

CUresult window_place_at(struct window *window, unsigned part, uint64_t address, uint64_t size)
{
    uint64_t start = window_part_start(window, part), end = window_part_end(window, part);

    if (address < start || address > end || size > end - address)
        return CUDA_ERROR_INVALID_VALUE;
    return ranges_add(&window->used, address, size, window) ? CUDA_ERROR_OUT_OF_MEMORY
                                                            : CUDA_SUCCESS;
}

uint64_t window_left(const struct window *window, uint64_t address)
{
    const struct range *range = ranges_find(&window->used, address);

    return range ? range->start + range->size - address : UINT64_MAX;
}

void window_unplace(struct window *window, uint64_t address)
{
    ranges_remove(&window->used, address, NULL);
}
