/* SPDX-License-Identifier: Apache-2.0 */
/* See cached.h. */
#include "cached.h"

#include "cached_state.h"
#include "device.h"
#include "feature.h"

const struct library *cached_library(const struct cached *cached)
{
    return cached->library;
}

struct kernel_table *cached_kernels(struct cached *cached)
{
    return &cached->kernels;
}

bool cached_is_shared(const struct cached *cached)
{
    return cached->sharing != FOR_ONE;
}

bool cached_has_variables(const struct cached *cached)
{
    return cached->sharing != FOR_ALL;
}

uint64_t cached_variable_bytes(const struct cached *cached)
{
    return cached->variable_bytes;
}

bool cached_has_state(const struct cached *cached)
{
    return cached->has_state || cached->library->may_allocate;
}

static bool is_carried(const struct cached *cached)
{
    return cached->variables.names.count && !cached->library->may_allocate &&
           !feature_is_off_once(FEATURE_VARIABLE_MOVES);
}

uint32_t cached_state(const struct cached *cached)
{
    if (!cached_has_state(cached))
        return cached->library->has_pointers ? WIRE_STATE_POINTERS : WIRE_STATE_NONE;
    return is_carried(cached) ? WIRE_STATE_CARRIED : WIRE_STATE_LOST;
}

bool cached_carries(const struct cached *cached, const char *name)
{
    const struct variables *variables = is_carried(cached) ? cached_variables(cached) : NULL;
    const struct variable *variable = variables ? variables_find(variables, name) : NULL;

    return variable && !variable_is_relocated(variables, variable);
}

const struct variables *cached_variables(const struct cached *cached)
{
    return cached->variables.each ? &cached->variables : NULL;
}

bool cached_is_loaded(const struct cached *cached)
{
    return cached->is_loaded;
}

/* For the next client, or for a move of this one to another server. */
static bool is_worth_recording(const struct cached *cached)
{
    return cached->sharing == IN_TURN || (cached->sharing == FOR_ONE && is_carried(cached));
}

/* If its variables cannot be recorded, the library serves this client alone, which stays. */
static void remember_variables(struct cached *cached)
{
    if (cached->variables.each || !is_worth_recording(cached))
        return;
    if (variables_remember(&cached->variables, cached->library->driver) == CUDA_SUCCESS)
        return;
    cached->sharing = FOR_ONE;
    image_names_fini(&cached->variables.names);
}

CUresult cached_query_begin(struct cached *cached, struct session *session, const char *what,
                            struct exclusive_call *call)
{
    CUresult result = cached->is_loaded || !session
                          ? exclusive_begin_now(cached->device, what, call)
                          : exclusive_begin(session, cached->device, what, call);

    if (result == CUDA_SUCCESS)
        remember_variables(cached);
    return result;
}

void cached_query_end(struct cached *cached, struct session *session, CUresult result,
                      struct exclusive_call *call)
{
    if (result == CUDA_SUCCESS)
        cached->is_loaded = true;
    exclusive_end(session, cached->device, call);
}
