/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries that are done with. NVIDIA's driver unloads one when all streams are idle, and
 * meanwhile nobody else gets into it; so they are put aside until nobody is at work (upkeep.h). A
 * server may never rest while its clients load and unload for ever, so there are bounds, and
 * whoever goes beyond them waits.
 */
#pragma once

#include <pthread.h>

#include "library.h"
#include "list.h"

/* Bytes of images, and of their variables. */
#define RETIRED_MAX 256u
#define RETIRED_BYTES_MAX (256ull << 20)

struct quiesce;

struct retired {
    struct quiesce *quiesce;
    pthread_mutex_t lock;
    struct list libraries; /* oldest first */
    unsigned count;
    uint64_t bytes;
};

void retired_init(struct retired *retired, struct quiesce *quiesce);

/* Unloads all. There is nobody any more. */
void retired_fini(struct retired *retired);

/* Takes over a library of which nobody knows anything any more, except for kernels that still run.
 * NULL is allowed. */
void retired_add(struct retired *retired, struct library *library, uint64_t bytes);

/* For when memory is short: unloads all. False when there was none, and so there is no more memory
 * than before. */
bool retired_give_way(struct retired *retired);

/* For when nobody is at work: unloads one. False when there is none, or when some stream waits for
 * a value. */
bool retired_unload(struct retired *retired);
