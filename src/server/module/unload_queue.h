/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of unused libraries. NVIDIA's driver unloads a library when all streams are idle, and
 * blocks other threads meanwhile. So libraries wait in this queue until no client is busy
 * (upkeep.h). Over a budget, clients with short work are suspended briefly while some libraries are
 * unloaded. Beyond the limits, which matter where clients always have long work, the oldest are
 * unloaded at once.
 *
 * Functions may be called from any thread.
 */
#pragma once

#include <pthread.h>

#include "library.h"
#include "list.h"

/* Limits of the number of libraries, and of the bytes of their images and variables. */
#define UNLOAD_QUEUE_MAX 1024u
#define UNLOAD_QUEUE_BYTES_MAX (1ull << 30)
#define UNLOAD_QUEUE_BUDGET 4u /* the budget is this fraction of the limits */

struct gate;

struct unload_queue {
    struct gate *gate;
    pthread_mutex_t lock;
    struct list libraries; /* oldest first */
    unsigned count;
    uint64_t bytes;
};

/* Before any other thread uses it. */
void unload_queue_init(struct unload_queue *queue, struct gate *gate);

/* Unloads all libraries. There are no clients any more. */
void unload_queue_fini(struct unload_queue *queue);

/* Takes over an unused library. Its kernels may still run. `bytes` are those of its image and
 * variables. NULL is allowed. */
void unload_queue_add(struct unload_queue *queue, struct library *library, uint64_t bytes);

/* Whether the queue has libraries. */
bool unload_queue_has_libraries(struct unload_queue *queue);

/* Whether the queue exceeds its budget, so that some libraries should be unloaded soon. */
bool unload_queue_is_over_budget(struct unload_queue *queue);

/* Memory is short: unloads all libraries, and waits for streams. False when there was none. */
bool unload_queue_drain(struct unload_queue *queue);

/* No client is busy: unloads one library. False when there is none, or when a stream waits for a
 * value. */
bool unload_queue_unload(struct unload_queue *queue);
