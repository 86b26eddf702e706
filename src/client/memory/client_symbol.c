/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses that libcudart has do not overlap, so each means one variable to the end. They are
 * looked at in calls of the runtime alone, where the address of the variable can be no other one.
 * Elsewhere the same number is an address that the present server has given.
 */
#include "client_symbol.h"

#include <string.h>

#include "cleanup.h"
#include "client.h"
#include "client_log.h"
#include "text.h"

_Atomic unsigned symbol_count;
static struct list symbols; /* under client->lock, as the next */
static unsigned copies;     /* under way, with an address of the present server */

/* The call of the runtime in which the thread is. */
static __thread struct symbol_call {
    enum symbol_use use;
    uint64_t asked; /* the address that it has been told, or 0 */
} symbol_call;

void symbols_init(void)
{
    list_init(&symbols);
    copies = 0;
    atomic_store_explicit(&symbol_count, 0, memory_order_relaxed);
}

/* ---- addresses ---- */

static bool overlaps(uint64_t address, const struct symbol *symbol, uint64_t size)
{
    return address < symbol->given + symbol->variable.size && symbol->given < address + size;
}

static bool has_moved(const struct symbol *symbol)
{
    return symbol->given != symbol->variable.address;
}

/* Whether an address of the variable could be taken for one that libcudart has from another server.
 * What this server has given does not overlap. */
static bool is_ambiguous_locked(const struct symbol *symbol)
{
    const struct allocation *variable = &symbol->variable;

    list_for_each (const struct symbol, other, &symbols, link)
        if (has_moved(other) && overlaps(variable->address, other, variable->size))
            return true;
    return false;
}

static CUresult refuse(const struct symbol *symbol)
{
    client_log("variable %s cannot be used: since the program has moved to another server, it is "
               "where another variable was",
               symbol->name);
    return CUDA_ERROR_NOT_SUPPORTED;
}

static bool add_symbol(struct symbol *symbol)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    symbol->given = symbol->variable.address;
    if (is_ambiguous_locked(symbol))
        return false;
    list_append(&symbols, &symbol->link);
    atomic_fetch_add_explicit(&symbol_count, 1, memory_order_relaxed);
    return true;
}

CUresult symbol_enter(struct symbol *symbol)
{
    if (!add_symbol(symbol))
        return refuse(symbol);
    variable_add(&symbol->variable);
    return CUDA_SUCCESS;
}

void symbol_remove(struct symbol *symbol)
{
    variable_remove(symbol->variable.address);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    list_remove(&symbol->link);
    atomic_fetch_sub_explicit(&symbol_count, 1, memory_order_relaxed);
}

static bool is_for_copy(enum symbol_use use)
{
    return use == SYMBOL_COPIED_TO || use == SYMBOL_COPIED_FROM;
}

/* The runtime may keep what it is told, so that has to mean this variable alone. */
static bool show_symbol(struct symbol *symbol)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    symbol->seen = true;
    symbol_call.asked = symbol->variable.address;
    return symbol_call.use == SYMBOL_NOT_USED || !is_ambiguous_locked(symbol);
}

CUresult symbol_give(struct symbol *symbol, CUdeviceptr *ret_address)
{
    if (symbol->owned) {
        *ret_address = symbol->variable.address;
        return CUDA_SUCCESS;
    }
    if (is_for_copy(symbol_call.use)) {
        *ret_address = symbol->given;
        return CUDA_SUCCESS;
    }
    if (!show_symbol(symbol))
        return refuse(symbol);
    *ret_address = symbol->variable.address;
    return CUDA_SUCCESS;
}

void symbol_move(struct symbol *symbol, uint64_t address)
{
    variable_remove(symbol->variable.address);
    symbol->variable.address = address;
    variable_add(&symbol->variable);
}

/* ---- for moves ---- */

enum move_obstacle symbols_obstacle(bool is_planned)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    list_for_each (const struct symbol, symbol, &symbols, link)
        if (symbol->seen || !is_planned)
            return OBSTACLE_ASKED;
    return copies ? OBSTACLE_CALL : OBSTACLE_NONE;
}

void symbols_name_seen(char *ret_name, size_t size)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    *ret_name = '\0';
    list_for_each (const struct symbol, symbol, &symbols, link) {
        if (!symbol->seen)
            continue;
        text_copy(ret_name, size, symbol->name);
        return;
    }
}

/* From the first to the last of them. */
static void extent_locked(uint64_t *ret_first, uint64_t *ret_last)
{
    *ret_first = UINT64_MAX;
    *ret_last = 0;
    list_for_each (const struct symbol, symbol, &symbols, link) {
        uint64_t address = symbol->variable.address, end = address + symbol->variable.size;

        *ret_first = address < *ret_first ? address : *ret_first;
        *ret_last = end > *ret_last ? end : *ret_last;
    }
}

bool symbols_occur(const unsigned char *messages, size_t size)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    uint64_t first, last, word;

    extent_locked(&first, &last);
    for (size_t at = 0; first <= last && at + sizeof(word) <= size; at++) {
        memcpy(&word, messages + at, sizeof(word));
        if (word >= first && word <= last)
            return true;
    }
    return false;
}

/* ---- calls of the runtime ---- */

static struct symbol *find_given_locked(uint64_t address)
{
    list_for_each (struct symbol, symbol, &symbols, link)
        if (address - symbol->given < symbol->variable.size)
            return symbol;
    return NULL;
}

static void show_all(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    list_for_each (struct symbol, symbol, &symbols, link)
        symbol->seen = true;
}

/* Which variable a graph gets is not known here, as libcudart may have its address. */
void symbol_call_begins(enum symbol_use use)
{
    symbol_call = (struct symbol_call){.use = use};
    if (use == SYMBOL_PUT_IN_GRAPH)
        show_all();
}

/* Where libcudart had the address, the program gets one that was right before a move. */
void symbol_call_ends(uint64_t *address)
{
    if (address && *address != symbol_call.asked) {
        _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
        struct symbol *symbol = find_given_locked(*address);

        if (symbol) {
            symbol->seen = true;
            *address += symbol->variable.address - symbol->given;
        }
    }
    symbol_call = (struct symbol_call){.use = SYMBOL_NOT_USED};
}

/* The node of a capture keeps the address. */
bool symbol_copy_begin_slowly(uint64_t *dst, uint64_t *src, bool is_captured)
{
    uint64_t *address = symbol_call.use == SYMBOL_COPIED_TO ? dst : src;

    if (!is_for_copy(symbol_call.use))
        return false;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    struct symbol *symbol = find_given_locked(*address);

    if (!symbol)
        return false;
    symbol->seen |= is_captured;
    *address += symbol->variable.address - symbol->given;
    copies++;
    return true;
}

void symbol_copy_end(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    copies--;
}

static bool is_stale_locked(uint64_t address)
{
    const struct symbol *symbol = find_given_locked(address);

    return symbol && has_moved(symbol);
}

bool symbol_node_is_stale(uint64_t dst, uint64_t src)
{
    if (symbol_call.use != SYMBOL_PUT_IN_GRAPH)
        return false;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    return is_stale_locked(dst) || is_stale_locked(src);
}
