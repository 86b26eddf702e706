/* SPDX-License-Identifier: Apache-2.0 */
#include "client_variable.h"

#include "cleanup.h"
#include "client.h"
#include "cuda_pointer.h"
#include "ranges.h"

_Atomic unsigned variable_count;
static struct ranges variables; /* struct allocation; under client->lock */

void variables_init(void)
{
    ranges_init(&variables);
    atomic_store_explicit(&variable_count, 0, memory_order_relaxed);
}

void variable_add(struct allocation *variable)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    if (ranges_add(&variables, variable->address, variable->size, variable) == 0)
        atomic_fetch_add_explicit(&variable_count, 1, memory_order_relaxed);
}

void variable_remove(uint64_t address)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    if (ranges_remove(&variables, address, NULL) == 0)
        atomic_fetch_sub_explicit(&variable_count, 1, memory_order_relaxed);
}

bool variable_find_slowly(uint64_t address, struct allocation *ret_variable)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    const struct range *range = ranges_find(&variables, address);

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
