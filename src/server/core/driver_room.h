/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for streams and graphs in a context. NVIDIA's driver (580) keeps what they need on the
 * device in blocks, one for 43 streams or small graphs, and gives what one of them had to the next.
 * When all blocks are full it takes another: it waits for all kernels of the context then and lets
 * no other thread in meanwhile, so that every client stands still, and forever where a kernel or a
 * stream waits for one of them.
 *
 * So the server has blocks taken in advance, by streams that it creates and destroys: before there
 * are clients, and later whenever no client is at work (upkeep.c). What does not fit into the room
 * that is left is created in a calm moment (calm.h).
 */
#pragma once

#include "calm.h"
#include "device.h"

/* A stream takes one piece, and so does a graph with few nodes. */
#define DRIVER_ROOM_STREAM 1u

/* Has blocks taken in the current context, before it has clients. */
void driver_room_prepare(void);

/* The account of a context that was prepared. NULL when out of memory. */
struct driver_room *driver_room_create(void);
/* NULL is allowed. */
void driver_room_destroy(struct driver_room *room);

/* From any thread: takes pieces for something that is about to be created, where there are enough.
 */
bool driver_room_try(const struct device *device, unsigned pieces);
/* Something is destroyed that had so many pieces. */
void driver_room_give(const struct device *device, unsigned pieces);

struct driver_room_use {
    unsigned pieces;
    bool grows; /* the room is not enough, so it is created in a calm moment */
    struct calm calm;
};

/* On the session's thread, in the device's context and without any lock: around the call of the
 * driver that creates something. Where the room is not enough the first waits for a calm moment.
 * The result is calm_begin()'s; unless it is CUDA_SUCCESS the call must not be made, and
 * driver_room_end() must not be called. `result` is that of the call; without CUDA_SUCCESS the
 * pieces are given back. */
CUresult driver_room_begin(struct session *session, const struct device *device, unsigned pieces,
                           const char *what, struct driver_room_use *use);
void driver_room_end(struct session *session, const struct device *device,
                     struct driver_room_use *use, CUresult result);

/* Whether the room had better be renewed. */
bool driver_room_is_short(const struct device *device);
/* In the device's context, while no kernel runs there: takes some milliseconds. */
void driver_room_renew(const struct device *device);
