/* SPDX-License-Identifier: Apache-2.0 */
#include "client_variable.h"

#include <stdatomic.h>

#include "cleanup.h"
#include "client.h"
#include "cuda_pointer.h"
#include "ranges.h"

static struct {
    struct ranges all;      /* struct allocation; under client->lock */
    _Atomic unsigned count; /* atomic: changed with the lock, read without */
} variables;

void variables_init(void)
{
    ranges_init(&variables.all);
    atomic_store_explicit(&variables.count, 0, memory_order_relaxed);
}

void variable_add(struct allocation *variable)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    if (ranges_add(&variables.all, variable->address, variable->size, variable) == 0)
        atomic_fetch_add_explicit(&variables.count, 1, memory_order_relaxed);
}

void variable_remove(uint64_t address)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    if (ranges_remove(&variables.all, address, NULL) == 0)
        atomic_fetch_sub_explicit(&variables.count, 1, memory_order_relaxed);
}

/* A call need not see a variable that another thread adds at the same time. */
bool variable_find(uint64_t address, struct allocation *ret_variable)
{
    const struct range *range;

    if (atomic_load_explicit(&variables.count, memory_order_relaxed) == 0)
        return false;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    range = ranges_find(&variables.all, address);
    if (range)
        *ret_variable = *(const struct allocation *)range->value;
    return range != NULL;
}

/* Another server loads it elsewhere. */
const struct memory_kind kind_variable = {.place = PLACE_DEVICE, .movable = true};

/* It is there in each context of the program. */
static void describe_managed(const struct allocation *allocation, struct cuda_pointer *pointer)
{
    pointer->context = NULL;
}

const struct memory_kind kind_managed_variable = {
    .place = PLACE_DEVICE,
    .managed = true,
    .movable = true,
    .describe = describe_managed,
};
