/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The managed variables that the program knows: each has its own bytes at the server's address.
 * Where managed memory moves, these are pages that do so (managed_allocation.h). Else the variable
 * has two page-locked copies to compare with: one that the server reads and one that it writes.
 */
#include "managed_variable.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_log.h"
#include "client_managed.h"
#include "cuda_advice.h"
#include "cuda_managed.h"
#include "deferred_signals.h"
#include "managed_allocation.h"
#include "managed_area.h"
#include "managed_copy.h"
#include "managed_exchange.h"
#include "managed_fault.h"
#include "managed_hooks.h"
#include "managed_move.h"
#include "managed_pages.h"

/* The alignment of the two copies. */
#define COPY_ALIGNMENT 64u

static struct managed {
    pthread_mutex_t changes; /* one variable is added or removed at a time; taken also during the
                                wait for a copy */
    pthread_mutex_t lock;
    struct ranges
        variables; /* variables in use, and where variables move also those whose owner rests */
    _Atomic unsigned count; /* atomic: how many are compared; changed with the lock, read without */
    struct managed_pages pages; /* under `changes` */
} managed;

#define CHANGES_LOCKED \
    _cleanup_mutex_ pthread_mutex_t *changes_held = call_mutex_hold(&managed.changes)

void managed_lock(void)
{
    deferring_mutex_lock(&managed.lock);
}

void managed_unlock(void)
{
    deferring_mutex_unlock(&managed.lock);
}

static struct managed_variable *from_locked(uint64_t address)
{
    const struct range *range = ranges_next(&managed.variables, address);

    return range ? range->value : NULL;
}

struct managed_variable *managed_first_locked(void)
{
    return from_locked(0);
}

struct managed_variable *managed_next_locked(const struct managed_variable *variable)
{
    return from_locked(variable->allocation.address + 1);
}

bool managed_variable_any(void)
{
    return atomic_load_explicit(&managed.count, memory_order_acquire) != 0;
}

bool managed_variables_next(uint64_t *at, uint64_t end, uint64_t *ret_size)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&managed.lock);
    const struct range *range = ranges_find(&managed.variables, *at);
    uint64_t stop;

    if (!range)
        range = ranges_next(&managed.variables, *at);
    if (*at >= end || !range || range->start >= end)
        return false;
    if (range->start > *at)
        *at = range->start;
    stop = range->start + range->size;
    *ret_size = (stop < end ? stop : end) - *at;
    return true;
}

bool managed_variable_is_alone(uint64_t start, uint64_t end)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&managed.lock);
    const struct range *first = ranges_find(&managed.variables, start), *next;

    if (!first)
        first = ranges_next(&managed.variables, start);
    next = first ? ranges_next(&managed.variables, first->start + 1) : NULL;
    return !next || next->start >= end;
}

static bool find_variable(uint64_t address, struct allocation *ret_allocation)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&managed.lock);
    const struct range *range = ranges_find(&managed.variables, address);
    const struct managed_variable *variable = range ? range->value : NULL;

    if (!variable || !variable->in_use)
        return false;
    if (ret_allocation)
        *ret_allocation = variable->allocation;
    return true;
}

static bool find_managed(uint64_t address, struct allocation *ret_allocation)
{
    return find_variable(address, ret_allocation) ||
           managed_allocation_find(address, ret_allocation);
}

static void end_view(uint64_t address, uint64_t size)
{
    managed_destroy_at(address);
}

void managed_init(void)
{
    memset(&managed, 0, sizeof(managed));
    pthread_mutex_init(&managed.changes, NULL);
    pthread_mutex_init(&managed.lock, NULL);
    managed_copy_init();
    area_init();
    managed_allocations_init();
    use_init();
    if (area_is_possible()) {
        managed.pages.fill = managed_create_at;
        managed.pages.empty = end_view;
    }
    atomic_store_explicit(&managed_in_use, 0, memory_order_relaxed);
    managed_hooks = (struct managed_hooks){
        .push = managed_copy_push,
        .count_work = managed_copy_count_work,
        .announce = use_announce,
        .given = use_note,
        .prefetch = move_prefetch,
        .pull = managed_copy_pull,
        .find = find_managed,
        .use = move_up,
        .free_all = managed_destroy_all,
        .trim = managed_trim,
        .launch = exchange_use,
        .free_capacity = exchange_free_capacity,
        .is_movable = area_is_possible,
    };
}

CUresult managed_replay(void)
{
    return area_replay();
}

void managed_before_fork(void)
{
    area_before_fork();
    managed_allocations_before_fork();
}

void managed_after_fork_in_parent(void)
{
    managed_allocations_after_fork_in_parent();
    area_after_fork_in_parent();
}

void managed_after_fork_in_child(void)
{
    area_after_fork_in_child();
    signals_after_fork_in_child();
}

/* ---- in use ---- */

static void give_copies(struct managed_variable *variable)
{
    free(heap_give(memory_host_heap(), (uintptr_t)variable->known));
    free(variable->asked);
    variable->known = variable->fetched = variable->asked = NULL;
}

static CUresult take_copies(struct managed_variable *variable)
{
    uint64_t size = (variable->allocation.size + COPY_ALIGNMENT - 1) & ~(COPY_ALIGNMENT - 1ull);
    uint64_t address;
    CUresult result = memory_take(memory_host_heap(), &kind_pinned, variable->allocation.context,
                                  2 * size, &address);

    if (result != CUDA_SUCCESS)
        return result;
    variable->known = (unsigned char *)(uintptr_t)address;
    variable->fetched = variable->known + size;
    variable->asked = malloc(size);
    if (variable->asked)
        return CUDA_SUCCESS;
    give_copies(variable);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static bool enter_locked(struct managed_variable *variable)
{
    const struct allocation *allocation = &variable->allocation;

    if (ranges_add(&managed.variables, allocation->address, allocation->size, variable))
        return false;
    variable->entered = true;
    if (!area_is_possible())
        atomic_fetch_add_explicit(&managed.count, 1, memory_order_release);
    atomic_fetch_add_explicit(&managed_in_use, 1, memory_order_release);
    return true;
}

static CUresult enter_table(struct managed_variable *variable)
{
    bool entered;

    managed_lock();
    entered = enter_locked(variable);
    managed_unlock();
    return entered ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void leave_table(struct managed_variable *variable)
{
    managed_lock();
    ranges_remove(&managed.variables, variable->allocation.address, NULL);
    managed_unlock();
    variable->entered = false;
    if (!area_is_possible())
        atomic_fetch_sub_explicit(&managed.count, 1, memory_order_release);
    atomic_fetch_sub_explicit(&managed_in_use, 1, memory_order_release);
}

static CUresult begin_comparing(struct managed_variable *variable, bool fresh)
{
    CUresult result = managed_copy_prepare(variable->allocation.context->device);

    if (result == CUDA_SUCCESS)
        result = take_copies(variable);
    if (result != CUDA_SUCCESS)
        return result;
    result = managed_fetch(variable, fresh);
    if (result == CUDA_SUCCESS)
        result = enter_table(variable);
    if (result != CUDA_SUCCESS)
        give_copies(variable);
    return result;
}

static void end_comparing(struct managed_variable *variable)
{
    leave_table(variable);
    managed_copy_settle();
    give_copies(variable);
}

/* The channel lock keeps copies away until the variable is in the table of variables to copy. */
static CUresult begin_moving(struct managed_variable *variable)
{
    const struct allocation *allocation = &variable->allocation;
    CUresult result;

    if (!fault_prepare(allocation->context->device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    channel_lock(&client->channel);
    move_up_for_variable_locked(allocation->address, allocation->size);
    result = enter_table(variable);
    channel_unlock(&client->channel);
    return result;
}

static CUresult begin_use(struct managed_variable *variable, struct context *context, bool fresh)
{
    CUresult result = CUDA_SUCCESS;

    variable->allocation.context = context;
    if (!variable->entered)
        result = area_is_possible() ? begin_moving(variable) : begin_comparing(variable, fresh);
    variable->in_use = result == CUDA_SUCCESS;
    return result;
}

/* Pages move also while the owner of their variables rests. */
static void end_use(struct managed_variable *variable)
{
    variable->in_use = false;
    if (variable->entered && !area_is_possible())
        end_comparing(variable);
}

static void end_variable(struct managed_variable *variable)
{
    end_use(variable);
    if (!variable->entered)
        return;
    channel_lock(&client->channel);
    leave_table(variable);
    channel_unlock(&client->channel);
}

/* ---- coming and going ---- */

static CUresult take_pages(uint64_t address, uint64_t size)
{
    int error = managed_pages_take(&managed.pages, address, size);

    if (error != -EEXIST)
        return error ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    client_log("a __managed__ variable cannot be reached: in this program something else is at "
               "%#llx; restart the program to get other addresses",
               (unsigned long long)address);
    return CUDA_ERROR_MAP_FAILED;
}

static void give_pages(const struct managed_variable *variable)
{
    managed_pages_give(&managed.pages, variable->allocation.address, variable->allocation.size);
}

static void variable_free(struct managed_variable *variable)
{
    if (!variable)
        return;
    cuda_advice_destroy(variable->allocation.advice);
    free(variable);
}

static struct managed_variable *variable_create(uint64_t address, uint64_t size)
{
    struct managed_variable *variable = calloc(1, sizeof(*variable));

    if (!variable)
        return NULL;
    variable->allocation = (struct allocation){
        .address = address,
        .size = size,
        .id = client_next_id(),
        .kind = &kind_managed_variable,
        .advice = cuda_advice_create(size),
    };
    if (variable->allocation.advice)
        return variable;
    variable_free(variable);
    return NULL;
}

CUresult managed_enter(struct list *variables, struct context *context, uint64_t address,
                       uint64_t size)
{
    struct managed_variable *variable;
    struct allocation known;
    CUresult result;
    CHANGES_LOCKED;

    if (managed_find(address, &known))
        return known.address == address && known.size == size ? CUDA_SUCCESS
                                                              : CUDA_ERROR_NOT_SUPPORTED;
    variable = variable_create(address, size);
    result = variable ? take_pages(address, size) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        result = begin_use(variable, context, true);
        if (result != CUDA_SUCCESS)
            give_pages(variable);
    }
    if (result != CUDA_SUCCESS) {
        variable_free(variable);
        return result;
    }
    list_append(variables, &variable->link);
    return CUDA_SUCCESS;
}

void managed_leave(struct list *variables)
{
    CHANGES_LOCKED;

    list_for_each (struct managed_variable, variable, variables, link)
        end_variable(variable);
    if (area_is_possible() && !list_empty(variables))
        managed_copy_settle();
    list_for_each_safe (struct managed_variable, variable, variables, link) {
        give_pages(variable);
        variable_free(variable);
    }
}

void managed_rest(struct list *variables)
{
    CHANGES_LOCKED;

    list_for_each (struct managed_variable, variable, variables, link)
        end_use(variable);
}

static void hand_over(struct list *variables, struct list *other)
{
    CHANGES_LOCKED;

    list_for_each_safe (struct managed_variable, variable, variables, link) {
        list_remove(&variable->link);
        list_append(other, &variable->link);
    }
}

void managed_move(struct list *variables, struct list *other, struct context *context)
{
    hand_over(variables, other);
    managed_wake(other, context);
}

CUresult managed_wake(struct list *variables, struct context *context)
{
    CUresult result = CUDA_SUCCESS;
    CHANGES_LOCKED;

    list_for_each (struct managed_variable, variable, variables, link) {
        if (result == CUDA_SUCCESS && !variable->in_use)
            result = begin_use(variable, context, false);
    }
    return result;
}
