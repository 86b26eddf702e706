/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window is a range of addresses that belongs to one client at a time, at the same place in the
 * client, in this process and on the GPU:
 *
 *     base           + stride       + count * stride
 *     | device 0 ... | device 1 ... | fences, host waits, staging | host granules ... |
 *
 * Windows outlive their clients. What was page-locked in the host part stays so and serves the next
 * client of the window, because cuMemHostUnregister stalls every client of the context. When nobody
 * is left, all but a few windows give that memory back.
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

/* No device is so small that there could be more. */
#define WINDOWS_MAX 1024u

struct window {
    struct list link;
    const struct devices *devices;
    struct page_locker *page_locker;
    uint64_t base;
    uint64_t host_base; /* where the GPU-visible region is mapped */
    int gpu_fd;         /* memfd of the GPU-visible region; -1 = it has been given back */
    struct ranges used; /* addresses of granules, in use or idle */
    struct list idle;   /* host granules that wait for somebody who asks */
    uint64_t idle_bytes;
};

struct windows {
    pthread_mutex_t lock;
    const struct devices *devices;
    struct page_locker *page_locker;
    struct list idle;
    struct list retired;
    uint64_t
        created[WINDOWS_MAX / 64]; /* bit s: the window at place s has been made, or can not be */
    unsigned next_place;
};

void windows_init(struct windows *windows, const struct devices *devices,
                  struct page_locker *page_locker);

/* A window for a new client, with its shared words zero. CUDA_ERROR_MPS_MAX_CLIENTS_REACHED when
 * all addresses are given out, else what the driver says. The calling thread is inside a context.
 */
CUresult windows_take(struct windows *windows, struct window **ret_window);

/* The window at this address, which a client had with an earlier server. CUDA_ERROR_MAP_FAILED when
 * somebody else has it. */
CUresult windows_take_at(struct windows *windows, uint64_t base, struct window **ret_window);

/* Its client is gone and so is all its work. NULL is allowed. */
void windows_put_back(struct windows *windows, struct window *window);

/* Its client may still write to the memory in it, and is not to be trusted. The window is used
 * again only when there is no other left, or there are many such, and then with new memory. NULL is
 * allowed. */
void windows_retire(struct windows *windows, struct window *window);

/* There are no clients: gives back the memory of one window that nobody needs soon. False when
 * there is nothing to do. The calling thread is inside a context. */
bool windows_trim(struct windows *windows);

/* How many windows there can be at most. */
unsigned windows_limit(const struct devices *devices);

/* The addresses of device `index`, or of host granules for index = devices->count. */
uint64_t window_part_start(const struct window *window, unsigned index);
uint64_t window_part_end(const struct window *window, unsigned index);

/* Takes `size` addresses in a part: CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult window_place(struct window *window, unsigned part, uint64_t size, uint64_t alignment,
                      uint64_t *ret_address);

/* The same at an address that is asked for. */
CUresult window_place_at(struct window *window, unsigned part, uint64_t address, uint64_t size);

/* Gives them back. */
void window_unplace(struct window *window, uint64_t address);

/* The words and the staging of the GPU-visible region. */
uint32_t *window_fence(const struct window *window, uint32_t word);
uint32_t *window_host_wait_word(const struct window *window, uint32_t word);
