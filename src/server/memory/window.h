/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window is a range of addresses that belongs to one client at a time, at the same place in the
 * client, in this process and on the GPU:
 *
 *     base           + stride       + count * stride
 *     | device 0 ... | device 1 ... | fences, host waits, staging | host granules ... |
 *
 * Windows outlive their clients, and their memory does not: a client may have given the descriptors
 * of what is page-locked in the host part to any process, so the next client of the window gets new
 * memory at the same addresses. The old memory is unlocked when no client is at work (upkeep.h),
 * because cuMemHostUnregister stalls every client of the context.
 */
#pragma once

#include <pthread.h>
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
    bool is_divided;    /* allocations may go from one granule of a device into the next */
    struct list idle;   /* host granules that are locked and wait for a request */
    uint64_t idle_bytes, host_bytes; /* of idle host granules, and of all */
};

struct windows {
    pthread_mutex_t lock;
    const struct devices *devices;
    struct page_locker *page_locker;
    struct list idle; /* no client has seen their memory, or they have none, which are behind */
    struct list used; /* some process may still have their memory */
    uint64_t
        created[WINDOWS_MAX / 64]; /* bit s: the window at place s exists, or cannot be created */
    unsigned next_place;
};

/* Before any other thread uses them. The devices and the locker stay the caller's. */
void windows_init(struct windows *windows, const struct devices *devices,
                  struct page_locker *page_locker);

/* A window for a new client, with its shared words zero. CUDA_ERROR_NOT_READY when there are too
 * many used windows, or no other addresses are left: then some have to be trimmed;
 * CUDA_ERROR_MPS_MAX_CLIENTS_REACHED when there are none at all, or what the driver says. Waits for
 * no kernel. From any thread that is in a context. */
CUresult windows_take(struct windows *windows, struct window **ret_window);

/* The window at this address, which the client had with an earlier server. CUDA_ERROR_MAP_FAILED
 * when another client has it, CUDA_ERROR_NOT_READY when one has had it, as above. */
CUresult windows_take_at(struct windows *windows, uint64_t base, struct window **ret_window);

/* A client has been offered the window, and is gone with all its work. NULL is allowed. */
void windows_put_back(struct windows *windows, struct window *window);

/* Whether there are windows that a client has had. */
bool windows_have_used(struct windows *windows);

/* Whether those hold so much memory that some had better be trimmed before the next is taken. */
bool windows_are_over_budget(struct windows *windows);

/* Unlocks the memory of one window that a client has had. False when there is none. Called between
 * quiesce_begin() and quiesce_end(), in a context. */
bool windows_trim(struct windows *windows);

/* Gives memory to one window, so that the next client need not wait for that. False when there is
 * nothing to do. In a context. */
bool windows_warm(struct windows *windows);

/* How many windows there can be at most, with these devices. */
unsigned windows_limit(const struct devices *devices);

/* The first and the last address plus one of device `index`, or of host granules for index =
 * devices->count. */
uint64_t window_part_start(const struct window *window, unsigned index);
uint64_t window_part_end(const struct window *window, unsigned index);

/* Takes `size` bytes of addresses in a part, where `capacity` bytes are free: CUDA_SUCCESS or
 * CUDA_ERROR_OUT_OF_MEMORY. These four are the session thread's. */
CUresult window_place(struct window *window, unsigned part, uint64_t size, uint64_t capacity,
                      uint64_t alignment, uint64_t *ret_address);

/* The same at an address that is asked for. CUDA_ERROR_INVALID_VALUE where that is not in the
 * part. */
CUresult window_place_at(struct window *window, unsigned part, uint64_t address, uint64_t size);

/* How many bytes from an address on were taken together; UINT64_MAX where none were. */
uint64_t window_left(const struct window *window, uint64_t address);

/* Gives them back. */
void window_unplace(struct window *window, uint64_t address);

/* The fence words and the host-wait words of the GPU-visible region. */
uint32_t *window_fence(const struct window *window, uint32_t word);
uint32_t *window_host_wait_word(const struct window *window, uint32_t word);
