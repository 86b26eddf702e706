/* SPDX-License-Identifier: Apache-2.0 */
/* Device granules: see memory.h. All functions are the session thread's. Those that take a granule
 * take memory of cuMemCreate as well (allocation.h), unless its address is meant. */
#pragma once

#include "memory.h"

/* The granule that begins at an address, or NULL. */
struct granule *device_granule_find(const struct session *session, uint64_t address);

/* What the client calls it by in messages, and files of suspended programs by. */
static inline uint64_t device_granule_key(const struct granule *granule)
{
    return granule->number ? granule->number : granule->address;
}

/* A granule of `size` bytes of the device, or of host memory, without an address and memory. */
struct granule device_granule_of(const struct device *device, uint64_t size, bool on_host);

/* Takes the granule's address in the client's window, or, if that is 0, one with `capacity` free
 * bytes behind it. CUDA_ERROR_OUT_OF_MEMORY, or CUDA_ERROR_INVALID_VALUE for one that is taken. */
CUresult device_granule_take_place(struct session *session, const struct device *device,
                                   uint64_t capacity, struct granule *granule);

/* Takes a place, charges the client, and maps the memory of `fd`, or new memory if that is -1. The
 * descriptor stays the caller's. The session keeps a copy of the granule: device_granule_find(). */
CUresult device_granule_create(struct session *session, const struct device *device, int fd,
                               uint64_t capacity, struct granule *granule);

/* Sends the client an inbox with a descriptor of the memory, so that the memory can outlive this
 * server. A client that may not have a descriptor, or for which the driver makes none, gets the
 * message alone. */
CUresult device_granule_send(struct session *session, struct granule *granule);

/* The same with a descriptor that the client has brought, and which stays the caller's. */
CUresult device_granule_lend(struct session *session, struct granule *granule, int fd);

/* Whether the client may have a descriptor of the memory, or has had one: see memory_may_export().
 */
bool device_granule_may_export(struct session *session, struct granule *granule);

/* Takes the client's descriptor back, so that the memory is free once it is released. Not when the
 * session ends: its client may be on the way to another server, with its memory. */
void device_granule_revoke(const struct granule *granule);

/* Releases its memory, its addresses and its charge. */
void device_granule_end(struct session *session, struct granule *granule);

/* Copies device memory in the current context, and waits until that is done. */
typedef CUresult device_granule_copier(CUdeviceptr dst, CUdeviceptr src, uint64_t size);

/* Replaces the granule's memory by host memory, or by memory of its device, with the same contents.
 * No work uses the granule. After CUDA_ERROR_OUT_OF_MEMORY or an error of the driver all is as
 * before. */
CUresult device_granule_exchange(struct session *session, struct granule *granule, bool on_host,
                                 device_granule_copier *copy);

/* Releases the memory of a granule of the device, and the charge, while its address stays taken.
 * No work uses it, and the context is the device's. */
void device_granule_withdraw(struct session *session, struct granule *granule);

/* The same, and the client's inbox gets the file with the contents instead. A descriptor that the
 * client had stays there until the file's is, so that a kill in between loses nothing. */
void device_granule_withdraw_saved(struct session *session, struct granule *granule, int file);

/* Gives it new memory. CUDA_ERROR_OUT_OF_MEMORY, or what the driver says. */
CUresult device_granule_restore(struct session *session, struct granule *granule);

/* Takes that back. What the client has of a file stays in its inbox. */
void device_granule_unrestore(struct session *session, struct granule *granule);

/* Once the contents are there: the client's inbox gets a descriptor, if it may have one. What it
 * has of a file is taken out behind that, so that a kill in between loses nothing. It is old as
 * soon as the client goes on. */
void device_granule_keep_again(struct session *session, struct granule *granule);

/* The session ends: releases the spare memory of exchanges. */
void device_granules_end_spare(struct session *session);
