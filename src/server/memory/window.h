/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window is an address range of one client at a time. It has the same addresses in the client, in
 * this process and on the GPU:
 *
 *     base           + stride       + count * stride
 *     | device 0 ... | device 1 ... | fences, host waits, staging | host granules ... |
 *
 * Windows outlive their clients, but their memory does not. A client may have passed descriptors of
 * its page-locked memory to any process, so the next client gets new memory at the same addresses.
 * The old memory is unlocked when no client is at work (upkeep.h), because cuMemHostUnregister
 * stalls every client of the context.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "list.h"
#include "ranges.h"

struct granule;
struct page_locker;

/* No device is so small that there could be more windows. */
#define WINDOWS_MAX 1024u

struct window {
    struct list link;
    const struct devices *devices;
    struct page_locker *page_locker;
    uint64_t base;
    uint64_t host_base; /* where the GPU-visible region is mapped */
    int gpu_fd;         /* memfd of the GPU-visible region; -1 = it has been given back */
    struct ranges used; /* addresses of granules, in use or idle */
    unsigned part_of[ATTACH_DEVICES_MAX]; /* where memory of a device has its addresses */
    bool is_divided;  /* allocations may go from one granule of a device into the next */
    struct list idle; /* host granules that are locked and wait for a request */
    uint64_t idle_bytes, host_bytes; /* of idle host granules, and of all */
};

struct windows {
    pthread_mutex_t lock;
    const struct devices *devices;
    struct page_locker *page_locker;
    struct list idle; /* their memory is new, or they have none; the latter come last */
    struct list used; /* some process may still have their memory */
    uint64_t
        created[WINDOWS_MAX / 64]; /* bit s: the window at place s exists, or cannot be created */
    unsigned next_place;
    bool (*is_claimed)(void *context, uint64_t base); /* NULL = none is */
    void *claims;
};

/* Before any other thread uses them. The devices and the locker stay the caller's. */
void windows_init(struct windows *windows, const struct devices *devices,
                  struct page_locker *page_locker);

/* Before the first client: `is_claimed` says whether a client of another server, which may come
 * here, has the window at `base`. New clients get such a window only when there is no other. */
void windows_set_claims(struct windows *windows, bool (*is_claimed)(void *context, uint64_t base),
                        void *claims);

/* A window for a new client, with its shared words zero. CUDA_ERROR_NOT_READY when used windows
 * must be trimmed first, because there are too many or no addresses are left.
 * CUDA_ERROR_MPS_MAX_CLIENTS_REACHED when all windows have clients, or the driver's error. Waits
 * for no kernel. From any thread in a context. */
CUresult windows_take(struct windows *windows, struct window **ret_window);

/* The window at this address, which the client had in an earlier server. CUDA_ERROR_MAP_FAILED when
 * another client has it; CUDA_ERROR_NOT_READY when another client had it, so that it must be
 * trimmed. */
CUresult windows_take_at(struct windows *windows, uint64_t base, struct window **ret_window);

/* A client that was offered the window is gone with all its work. NULL is allowed. */
void windows_put_back(struct windows *windows, struct window *window);

/* Whether there are used windows. */
bool windows_have_used(struct windows *windows);

/* Whether used windows exceed their memory budget, so that some should be trimmed soon. */
bool windows_are_over_budget(struct windows *windows);

/* Unlocks the memory of one used window. False when there is none. Called between gate_close()
 * and gate_open(), in a context. */
bool windows_trim(struct windows *windows);

/* Creates the memory of one window in advance, so that the next client does not wait. False when
 * enough windows have it. In a context. */
bool windows_warm(struct windows *windows);

/* The largest possible number of windows with these devices. */
unsigned windows_limit(const struct devices *devices);

/* Its place among all windows of such devices, from 0 on. */
unsigned window_number(const struct window *window);

/* The first and the last address plus one of device `index`, or of host granules for index =
 * devices->count. */
uint64_t window_part_start(const struct window *window, unsigned index);
uint64_t window_part_end(const struct window *window, unsigned index);

/* Takes `size` bytes of addresses in a part, at a place with `capacity` free bytes: CUDA_SUCCESS or
 * CUDA_ERROR_OUT_OF_MEMORY. These four functions are the session thread's. */
CUresult window_place(struct window *window, unsigned part, uint64_t size, uint64_t capacity,
                      uint64_t alignment, uint64_t *ret_address);

/* The same at a given address. CUDA_ERROR_INVALID_VALUE when that is not in the part. */
CUresult window_place_at(struct window *window, unsigned part, uint64_t address, uint64_t size);

/* The bytes from an address to the end of its placement; UINT64_MAX when there is none. */
uint64_t window_left(const struct window *window, uint64_t address);

/* Releases the addresses. */
void window_unplace(struct window *window, uint64_t address);

/* The fence words and the host-wait words of the GPU-visible region. */
_Atomic uint32_t *window_fence(const struct window *window, uint32_t word);
_Atomic uint32_t *window_host_wait_word(const struct window *window, uint32_t word);
