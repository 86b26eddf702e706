/* SPDX-License-Identifier: Apache-2.0 */
/* See tex_table.h. */
#include "tex_table.h"

#include <errno.h>
#include <stdlib.h>

#define INDEX_BITS 20
#define INDEX_MASK ((1u << INDEX_BITS) - 1)

struct tex_slot {
    const struct sg_texture *texture; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
};

static int grow_table(struct tex_table *table)
{
    uint32_t capacity = table->capacity ? 2 * table->capacity : 16;
    struct tex_slot *slots = NULL;

    if (capacity <= INDEX_MASK + 1)
        slots = realloc(table->slots, capacity * sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    table->slots = slots;
    table->capacity = capacity;
    return 0;
}

int tex_table_add(struct tex_table *table, const struct sg_texture *texture, uint64_t *ret_number)
{
    uint32_t index = table->free;

    if (index == table->used) {
        if (table->used == table->capacity && grow_table(table) < 0)
            return -ENOMEM;
        table->slots[index] = (struct tex_slot){.next_free = index + 1};
        table->used++;
    }
    struct tex_slot *slot = &table->slots[index];
    table->free = slot->next_free;
    slot->texture = texture;
    slot->generation++;
    *ret_number = (uint64_t)slot->generation << INDEX_BITS | index;
    return 0;
}

static struct tex_slot *find_slot(const struct tex_table *table, uint64_t number)
{
    uint32_t index = (uint32_t)number & INDEX_MASK;

    if (index >= table->used || number >> INDEX_BITS != table->slots[index].generation)
        return NULL;
    return &table->slots[index];
}

int tex_table_remove(struct tex_table *table, uint64_t number)
{
    struct tex_slot *slot = find_slot(table, number);

    if (!slot || !slot->texture)
        return -ENOENT;
    slot->texture = NULL;
    slot->next_free = table->free;
    table->free = (uint32_t)number & INDEX_MASK;
    return 0;
}

const struct sg_texture *tex_table_get(const struct tex_table *table, uint64_t number)
{
    struct tex_slot *slot = find_slot(table, number);

    return slot ? slot->texture : NULL;
}

void tex_table_fini(struct tex_table *table)
{
    free(table->slots);
}
