/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of modules as the runtime knows them. For cudaMemcpyToSymbol, libcudart asks for the
 * address of a variable, and may keep it. The program itself does not see it before
 * cudaGetSymbolAddress. So the variable can be elsewhere after a move to another server: copies
 * that libcudart makes go there.
 */
#pragma once

#include "client_variable.h"
#include "cuda_abi.h"
#include "list.h"
#include "move_obstacle.h"

/* What the runtime's call in which the thread is does with a variable. */
enum symbol_use {
    SYMBOL_NOT_USED, /* in no such call: it is the program that asks */
    SYMBOL_COPIED_TO,
    SYMBOL_COPIED_FROM,
    SYMBOL_SEEN,         /* the program gets the address */
    SYMBOL_PUT_IN_GRAPH, /* a node of a graph gets the address */
};

struct symbol {
    struct allocation variable; /* where it is now */
    uint64_t given;             /* the address that libcudart may keep */
    bool seen;                  /* the program may keep its address: it cannot be elsewhere */
    bool owned;                 /* it is memory of the client: module_global() */
    struct list link;           /* of all of them, under client->lock, as the rest */
    struct list module_link;    /* the module's */
    char name[];
};

extern _Atomic unsigned symbol_count; /* atomic: changed with client->lock, read without */

/* Called once while attaching. */
void symbols_init(void);

/* Enters a symbol, whose variable, `seen` and name are set. It stays the caller's until it has been
 * removed. CUDA_ERROR_NOT_SUPPORTED, in rare cases and only after a move: libcudart knows another
 * variable by this address. */
CUresult symbol_enter(struct symbol *symbol);
void symbol_remove(struct symbol *symbol);

/* The address for the call that asks for it: symbol_call_begins(). Errors as above. */
CUresult symbol_give(struct symbol *symbol, CUdeviceptr *ret_address);

/* Another server has loaded the variable at this address. */
void symbol_move(struct symbol *symbol, uint64_t address);

/* OBSTACLE_NONE, or why symbols keep the program from a move. Contents that the program has copied
 * to variables go with planned moves only. */
enum move_obstacle symbols_obstacle(bool is_planned);

/* Writes the name of a variable whose address the program may keep, or "" when there is none. The
 * name is cut to `size` bytes. */
void symbols_name_seen(char *ret_name, size_t size);

/* Whether a word of messages for the server may be an address of a symbol. */
bool symbols_occur(const unsigned char *messages, size_t size);

/* ---- calls of the runtime ---- */

/* The thread is in a call of the runtime with a variable, until the second. Where the program gets
 * an address by the call, *address is it, and is corrected; else `address` is NULL. */
void symbol_call_begins(enum symbol_use use);
void symbol_call_ends(uint64_t *address);

bool symbol_copy_begin_slowly(uint64_t *dst, uint64_t *src, bool is_captured);

/* Corrects the addresses of a copy that the runtime makes for such a call. With true, the program
 * does not move until symbol_copy_end(). */
static inline bool symbol_copy_begin(uint64_t *dst, uint64_t *src, bool is_captured)
{
    return atomic_load_explicit(&symbol_count, memory_order_relaxed) &&
           symbol_copy_begin_slowly(dst, src, is_captured);
}

void symbol_copy_end(void);

/* Whether the runtime has made a node of a graph with an address that was right before a move. */
bool symbol_node_is_stale(uint64_t dst, uint64_t src);
