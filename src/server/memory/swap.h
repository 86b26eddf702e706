/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the memory of a client from its devices and gives it back. Meanwhile its contents are in
 * the pool (swap_pool.h) or a file, its addresses stay the client's, and nothing is charged.
 *
 * Functions are the session thread's, while none of the client's streams has work, unless a comment
 * says otherwise.
 */
#pragma once

#include "session.h"
#include "suspend_result.h"

struct granule;

/* SUSPEND_OK, or what keeps the client's memory on its devices. */
enum suspend_result swap_obstacle(const struct session *session);

/* Whether a client whose session ends with its memory in a file gets all of that again. */
bool swap_is_kept(struct session *session);

/* What shall leave: so many bytes of a device, or a little more, because granules leave as a whole.
 */
struct swap_part {
    unsigned device;
    uint64_t bytes;
};

/* Either the part of the client's memory leaves (NULL: all that has not left yet), or none of it:
 * SUSPEND_POOL_FULL, SUSPEND_FAILED. Memory that managed allocations have put into the host's
 * memory stays there. Contents that are in the pool already, because they have not changed since
 * the last return, leave first, and are not among *ret_copied bytes. */
enum suspend_result swap_out(struct session *session, const struct swap_part *part,
                             uint64_t *ret_copied);

struct swap_saving;

/* The same into a file (swap_file.h), whose descriptors the client gets in place of its memory's.
 * So the contents outlive this server. Or SUSPEND_FILE_FULL, SUSPEND_FILE_FAILED, SUSPEND_FAILED.
 */
enum suspend_result swap_out_to_file(struct session *session, const struct swap_saving *saving);

/* Writes the contents to the file, as they are now. The memory stays. The client may go on, while
 * the rest of the file is written. The descriptor stays the caller's. */
enum suspend_result swap_checkpoint_begin(struct session *session, int file);

/* Whether the file is still being written. */
bool swap_checkpoint_runs(const struct session *session);

/* Waits for the end, and says whether the file has all. */
enum suspend_result swap_checkpoint_end(struct session *session);

/* Or gives the file up. */
void swap_checkpoint_cancel(struct session *session);

/* Room on each device. What has come back is taken from it. */
struct swap_room {
    uint64_t bytes[SERVER_MAX_DEVICES];
};

/* The same back: SUSPEND_NO_MEMORY, SUSPEND_FAILED; SUSPEND_FILE_FAILED, SUSPEND_FILE_DAMAGED. All
 * that is away returns, or what there is room for. Limits are not asked. */
enum suspend_result swap_in(struct session *session, struct swap_room *room);

/* The bytes of a device that could leave now. */
uint64_t swap_bytes_here(struct session *session, unsigned device);

/* A new granule without memory, whose contents an earlier server has saved in the file. The
 * descriptor stays the caller's. */
CUresult swap_adopt(struct session *session, struct granule *granule, int fd);

/* Whether the memory of a client that has come with it in a file returns without an order. */
bool swap_returns(struct session *session);

/* The granule ends without its memory. */
void swap_forget(struct session *session, struct granule *granule);

/* From any thread: the bytes of a device that are in the pool; and of all devices. */
uint64_t swap_bytes(const struct session *session, unsigned device);
uint64_t swap_bytes_in_all(const struct session *session);

/* Bytes that are page-locked for contents, and those of them that have some. Then those with
 * contents of memory that is on its device again; these are given up for others. */
struct swap_pool_usage {
    uint64_t locked, used, kept;
};

/* From any thread. */
struct swap_pool_usage swap_pool_usage(const struct server *server);

/* From any thread, in the context of the device: page-locks some of `unused` bytes ahead. False
 * when so many are unused already, or there can be no more. */
bool swap_lock_ahead(struct server *server, const struct device *device, uint64_t unused);

/* From any thread, in a context: releases what the pool does not use. */
void swap_trim(struct server *server);
