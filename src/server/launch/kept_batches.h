/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph batches that a stream keeps for sequences of functions that its program repeats, such as
 * the steps of a training. Their nodes already have the right functions, and mostly the right
 * parameters. Such a batch costs the driver a quarter of one whose nodes get other functions.
 *
 * The key of a sequence is a hash. Another sequence with the same key only costs time: who finds a
 * batch compares the lengths, and graph_batch_set() compares the launches.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct graph_batch;
struct module;

#define KEPT_BATCHES_MAX 24u

struct kept_batch {
    uint64_t key;              /* 0 = the place is free */
    uint64_t turn;             /* of kept_batches, when the sequence came last */
    unsigned seen;             /* how often it has come */
    struct graph_batch *batch; /* NULL: it has not come often enough */
};

/* All zero is an empty one. */
struct kept_batches {
    uint64_t turn;
    struct kept_batch kept[KEPT_BATCHES_MAX];
};

/* The batch of this sequence, or NULL. */
struct graph_batch *kept_batches_find(struct kept_batches *kept, uint64_t key);

/* Notes that a sequence without a batch has come. Returns its place when a batch is worth it now,
 * else NULL. The caller creates the batch and enters it there, if it can. */
struct kept_batch *kept_batches_want(struct kept_batches *kept, uint64_t key);

/* Destroys a batch that no sequence has used for long, or else none. Whether it did. */
bool kept_batches_drop_unused(struct kept_batches *kept);

/* Destroys the batches that use the module's functions; NULL = all. Returns how many. */
unsigned kept_batches_drop(struct kept_batches *kept, const struct module *module);
