/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries that are no longer used. NVIDIA's driver unloads a library when all streams are idle,
 * and lets no other thread into it meanwhile; so they are kept until no client is busy (upkeep.h).
 * A server may never be idle while its clients load and unload. So once there are many, clients
 * with short work are held back for a moment in which some are unloaded; and beyond the limits,
 * which are for servers whose clients always have long work, the oldest are unloaded at once.
 *
 * Functions may be called from any thread.
 */
#pragma once

#include <pthread.h>

#include "library.h"
#include "list.h"

/* Limits of the number, and of the bytes of images and their variables. */
#define UNLOAD_QUEUE_MAX 1024u
#define UNLOAD_QUEUE_BYTES_MAX (1ull << 30)
#define UNLOAD_QUEUE_BUDGET 4u /* one part in so many of these is much */

struct quiesce;

struct unload_queue {
    struct quiesce *quiesce;
    pthread_mutex_t lock;
    struct list libraries; /* oldest first */
    unsigned count;
    uint64_t bytes;
};

/* Before any other thread uses it. */
void unload_queue_init(struct unload_queue *queue, struct quiesce *quiesce);

/* Unloads all. There are no clients any more. */
void unload_queue_fini(struct unload_queue *queue);

/* Takes over a library that only kernels still use that run. `bytes` are those of its image and
 * variables. NULL is allowed. */
void unload_queue_add(struct unload_queue *queue, struct library *library, uint64_t bytes);

/* Whether there are some. */
bool unload_queue_has_libraries(struct unload_queue *queue);

/* Whether there are so many that some had better be unloaded soon. */
bool unload_queue_is_over_budget(struct unload_queue *queue);

/* Memory is short: unloads all libraries, and waits for streams. False when there was none. */
bool unload_queue_drain(struct unload_queue *queue);

/* No client is busy: unloads one library. False when there is none, or when a stream waits for a
 * value. */
bool unload_queue_unload(struct unload_queue *queue);
