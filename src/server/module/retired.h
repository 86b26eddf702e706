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
#define RETIRED_MAX 1024u
#define RETIRED_BYTES_MAX (1ull << 30)
#define RETIRED_CROWDED 4u /* one part in so many of these is much */

struct quiesce;

struct retired {
    struct quiesce *quiesce;
    pthread_mutex_t lock;
    struct list libraries; /* oldest first */
    unsigned count;
    uint64_t bytes;
};

/* Before any other thread uses it. */
void retired_init(struct retired *retired, struct quiesce *quiesce);

/* Unloads all. There are no clients any more. */
void retired_fini(struct retired *retired);

/* Takes over a library that only kernels still use that run. `bytes` are those of its image and
 * variables. NULL is allowed. */
void retired_add(struct retired *retired, struct library *library, uint64_t bytes);

/* Whether there are some. */
bool retired_exist(struct retired *retired);

/* Whether there are so many that some had better be unloaded soon. */
bool retired_is_crowded(struct retired *retired);

/* Memory is short: unloads all libraries, and waits for streams. False when there was none. */
bool retired_give_way(struct retired *retired);

/* No client is busy: unloads one library. False when there is none, or when a stream waits for a
 * value. */
bool retired_unload(struct retired *retired);
