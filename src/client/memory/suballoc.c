/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every byte of every granule belongs to exactly one block, free or taken. All blocks are in one
 * tree ordered by address (a treap), the free ones also in bins by size. A block given back joins
 * its free neighbors of the same granule, so two free blocks are never adjacent in one.
 */
#include "suballoc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct suballoc_block {
    uint64_t address;
    uint64_t size;
    uint64_t asked;
    void *user;
    struct suballoc_block *left, *right;        /* the tree */
    struct suballoc_block *below, *above;       /* neighbors in the same granule */
    struct suballoc_block *bin_prev, *bin_next; /* only while free */
    uint32_t weight;
    bool taken;
};

static uint64_t round_up(uint64_t size)
{
    return (size + SUBALLOC_ALIGNMENT - 1) & ~(uint64_t)(SUBALLOC_ALIGNMENT - 1);
}

/* ---- size classes: 16 bins for each power of two ---- */

static unsigned bin_of(uint64_t size)
{
    unsigned log = 63 - (unsigned)__builtin_clzll(size);

    return log < 4 ? (unsigned)size : (log - 3) * 16 + (unsigned)((size >> (log - 4)) & 15);
}

/* The first bin in which every block is at least `size` large. */
static unsigned bin_at_least(uint64_t size)
{
    unsigned bin = bin_of(size);
    unsigned log = 63 - (unsigned)__builtin_clzll(size);
    uint64_t step = log < 4 ? 1 : UINT64_C(1) << (log - 4);

    return size & (step - 1) ? bin + 1 : bin;
}

static void bin_insert(struct suballoc *a, struct suballoc_block *block)
{
    unsigned bin = bin_of(block->size);

    block->bin_prev = NULL;
    block->bin_next = a->bins[bin];
    if (block->bin_next)
        block->bin_next->bin_prev = block;
    a->bins[bin] = block;
    a->filled[bin / 64] |= UINT64_C(1) << (bin % 64);
}

static void bin_remove(struct suballoc *a, struct suballoc_block *block)
{
    unsigned bin = bin_of(block->size);

    if (block->bin_next)
        block->bin_next->bin_prev = block->bin_prev;
    if (block->bin_prev)
        block->bin_prev->bin_next = block->bin_next;
    else
        a->bins[bin] = block->bin_next;
    if (!a->bins[bin])
        a->filled[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
}

static struct suballoc_block *bin_search(const struct suballoc *a, uint64_t size)
{
    unsigned bin = bin_at_least(size);

    for (unsigned word = bin / 64; word < SUBALLOC_BINS / 64; word++) {
        uint64_t bits = a->filled[word];

        if (word == bin / 64)
            bits &= ~UINT64_C(0) << (bin % 64);
        if (bits)
            return a->bins[word * 64 + (unsigned)__builtin_ctzll(bits)];
    }
    /* The bin of the size itself may still hold a block that is just large enough. */
    for (struct suballoc_block *b = a->bins[bin_of(size)]; b; b = b->bin_next)
        if (b->size >= size)
            return b;
    return NULL;
}

/* ---- the tree ---- */

static struct suballoc_block *tree_merge(struct suballoc_block *low, struct suballoc_block *high)
{
    if (!low || !high)
        return low ? low : high;
    if (low->weight > high->weight) {
        low->right = tree_merge(low->right, high);
        return low;
    }
    high->left = tree_merge(low, high->left);
    return high;
}

static void tree_split(struct suballoc_block *node, uint64_t address, struct suballoc_block **low,
                       struct suballoc_block **high)
{
    if (!node) {
        *low = *high = NULL;
    } else if (node->address < address) {
        *low = node;
        tree_split(node->right, address, &node->right, high);
    } else {
        *high = node;
        tree_split(node->left, address, low, &node->left);
    }
}

static void tree_insert(struct suballoc *a, struct suballoc_block *block)
{
    struct suballoc_block *low, *high;

    a->random = a->random * 1664525u + 1013904223u;
    block->weight = a->random >> 1 ^ (uint32_t)(block->address >> 9) * 2654435761u;
    block->left = block->right = NULL;
    tree_split(a->root, block->address, &low, &high);
    a->root = tree_merge(tree_merge(low, block), high);
}

static void tree_remove(struct suballoc *a, struct suballoc_block *block)
{
    struct suballoc_block **link = &a->root;

    while (*link != block)
        link = block->address < (*link)->address ? &(*link)->left : &(*link)->right;
    *link = tree_merge(block->left, block->right);
}

/* The last block that starts at or below `address`. */
static struct suballoc_block *tree_floor(const struct suballoc *a, uint64_t address)
{
    struct suballoc_block *best = NULL;

    for (struct suballoc_block *node = a->root; node;) {
        if (node->address <= address) {
            best = node;
            node = node->right;
        } else {
            node = node->left;
        }
    }
    return best;
}

static struct suballoc_block *tree_ceiling(const struct suballoc *a, uint64_t address)
{
    struct suballoc_block *best = NULL;

    for (struct suballoc_block *node = a->root; node;) {
        if (node->address >= address) {
            best = node;
            node = node->left;
        } else {
            node = node->right;
        }
    }
    return best;
}

/* ---- blocks ---- */

static struct suballoc_block *block_create(struct suballoc *a, uint64_t address, uint64_t size)
{
    struct suballoc_block *block = calloc(1, sizeof(*block));

    if (block) {
        block->address = address;
        block->size = size;
        tree_insert(a, block);
    }
    return block;
}

static bool is_whole_granule(const struct suballoc_block *block)
{
    return !block->below && !block->above;
}

static void mark_free(struct suballoc *a, struct suballoc_block *block)
{
    block->taken = false;
    block->user = NULL;
    bin_insert(a, block);
    a->free_bytes += block->size;
    if (is_whole_granule(block))
        a->whole_free_bytes += block->size;
}

static void unmark_free(struct suballoc *a, struct suballoc_block *block)
{
    bin_remove(a, block);
    a->free_bytes -= block->size;
    if (is_whole_granule(block))
        a->whole_free_bytes -= block->size;
}

static void mark_taken(struct suballoc_block *block, uint64_t asked, void *user)
{
    block->taken = true;
    block->asked = asked;
    block->user = user;
}

/* `block` takes the place of its upper neighbor too. Neither is in a bin. */
static void swallow_above(struct suballoc *a, struct suballoc_block *block)
{
    struct suballoc_block *gone = block->above;

    block->size += gone->size;
    block->above = gone->above;
    if (block->above)
        block->above->below = block;
    tree_remove(a, gone);
    free(gone);
}

static int split_off(struct suballoc *a, struct suballoc_block *block, uint64_t size)
{
    struct suballoc_block *rest = block_create(a, block->address + size, block->size - size);

    if (!rest)
        return -ENOMEM;
    block->size = size;
    rest->below = block;
    rest->above = block->above;
    if (rest->above)
        rest->above->below = rest;
    block->above = rest;
    mark_free(a, rest);
    return 0;
}

void suballoc_init(struct suballoc *a)
{
    memset(a, 0, sizeof(*a));
    a->random = 1;
}

static void destroy_tree(struct suballoc_block *node)
{
    if (!node)
        return;
    destroy_tree(node->left);
    destroy_tree(node->right);
    free(node);
}

void suballoc_fini(struct suballoc *a)
{
    destroy_tree(a->root);
    suballoc_init(a);
}

int suballoc_add_granule(struct suballoc *a, uint64_t address, uint64_t size)
{
    struct suballoc_block *block = block_create(a, address, size);

    if (!block)
        return -ENOMEM;
    mark_free(a, block);
    return 0;
}

int suballoc_add_taken(struct suballoc *a, uint64_t address, uint64_t size, uint64_t taken_size,
                       void *user)
{
    struct suballoc_block *block = block_create(a, address, size);

    if (!block)
        return -ENOMEM;
    mark_taken(block, taken_size, user);
    return 0;
}

uint64_t suballoc_remove_free_granule(struct suballoc *a, uint64_t *ret_size)
{
    for (unsigned bin = SUBALLOC_BINS; a->whole_free_bytes && bin-- > 0;) {
        for (struct suballoc_block *block = a->bins[bin]; block; block = block->bin_next) {
            uint64_t address = block->address;

            if (!is_whole_granule(block))
                continue;
            *ret_size = block->size;
            unmark_free(a, block);
            tree_remove(a, block);
            free(block);
            return address;
        }
    }
    return 0;
}

uint64_t suballoc_take(struct suballoc *a, uint64_t size, void *user)
{
    uint64_t rounded = round_up(size);
    struct suballoc_block *block;

    if (size == 0 || rounded < size)
        return 0;
    block = bin_search(a, rounded);
    if (!block)
        return 0;
    unmark_free(a, block);
    if (block->size > rounded && split_off(a, block, rounded) < 0) {
        mark_free(a, block);
        return 0;
    }
    mark_taken(block, size, user);
    return block->address;
}

int suballoc_give(struct suballoc *a, uint64_t address)
{
    struct suballoc_block *block = tree_floor(a, address);

    if (!block || block->address != address || !block->taken)
        return -ENOENT;
    if (block->above && !block->above->taken) {
        unmark_free(a, block->above);
        swallow_above(a, block);
    }
    if (block->below && !block->below->taken) {
        block = block->below;
        unmark_free(a, block);
        swallow_above(a, block);
    }
    mark_free(a, block);
    return 0;
}

static void describe_block(const struct suballoc_block *block, struct suballoc_info *ret_info)
{
    *ret_info = (struct suballoc_info){block->address, block->asked, block->user};
}

bool suballoc_find(const struct suballoc *a, uint64_t address, struct suballoc_info *ret_info)
{
    const struct suballoc_block *block = tree_floor(a, address);

    if (!block || !block->taken || address - block->address >= block->asked)
        return false;
    describe_block(block, ret_info);
    return true;
}

bool suballoc_next(const struct suballoc *a, uint64_t address, struct suballoc_info *ret_info)
{
    const struct suballoc_block *block = tree_ceiling(a, address);

    while (block && !block->taken)
        block = tree_ceiling(a, block->address + block->size);
    if (!block)
        return false;
    describe_block(block, ret_info);
    return true;
}
