/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive doubly linked list: the links live inside the items, so nothing is allocated.
 *
 *     struct item { int value; struct list link; };
 *     struct list items;  list_init(&items);  list_append(&items, &item->link);
 *     list_for_each(struct item, item, &items, link) ...
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev, *next;
};

#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* Makes `list` an empty list, or an item that is in no list. */
static inline void list_init(struct list *list)
{
    list->prev = list->next = list;
}

static inline bool list_empty(const struct list *list)
{
    return list->next == list;
}

/* Puts `item` right behind `where`: list_insert(&list, item) makes it the first one. */
static inline void list_insert(struct list *where, struct list *item)
{
    item->prev = where;
    item->next = where->next;
    where->next->prev = item;
    where->next = item;
}

/* Makes `item` the last one. */
static inline void list_append(struct list *list, struct list *item)
{
    list_insert(list->prev, item);
}

/* Takes `item` out of its list. It may be removed again, which does nothing. */
static inline void list_remove(struct list *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    list_init(item);
}

/* The first item, or NULL. */
#define list_first(list, type, member) \
    (list_empty(list) ? NULL : container_of((list)->next, type, member))

/* Visits each item; the body must not remove any. */
#define list_for_each(type, item, list, member)                                          \
    for (type *item = container_of((list)->next, type, member); &item->member != (list); \
         item = container_of(item->member.next, type, member))

/* Visits each item; the body may remove and free the item that it is at, but no other. */
#define list_for_each_safe(type, item, list, member)                        \
    for (type *item = container_of((list)->next, type, member),             \
              *item##_next = container_of(item->member.next, type, member); \
         &item->member != (list);                                           \
         item = item##_next, item##_next = container_of(item->member.next, type, member))
