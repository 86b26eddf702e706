/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of green contexts, and which green context is current; see soft_green.h. */
#include "soft_green.h"

#include "schedule.h"

static const struct operation_type wait_type = {0};

_Static_assert(SM_SET_MAX == SG_MAX_SMS, "a set has a bit for each virtual SM");

struct green *green_of_context_locked(CUcontext handle)
{
    return handle ? soft_get(SOFT_GREEN_CONTEXT, handle) : NULL;
}

struct green *green_current_locked(void)
{
    CUcontext current = NULL;

    soft_cuCtxGetCurrent(&current);
    return green_of_context_locked(current);
}

bool green_add_stream_locked(struct green *green, struct stream *stream)
{
    struct operation *wait;

    stream->green = green;
    stream->confined = sm_set_count(&green->set) < green->device->sm_count;
    if (stream->confined)
        stream->part = green->set;
    if (!green->barrier || green->barrier->state == OPERATION_FINISHED)
        return true;
    wait = operation_create(sizeof(*wait), &wait_type);
    if (!wait)
        return false;
    operation_depend_locked(wait, green->barrier);
    schedule_enqueue_locked(stream, wait);
    operation_unref_locked(wait);
    return true;
}

bool green_adopt_stream_locked(struct stream *stream)
{
    struct green *green = green_current_locked();

    return !green || green_add_stream_locked(green, stream);
}

struct stream *green_default_locked(const struct green *green)
{
    return soft_get(SOFT_STREAM, (void *)green->legacy);
}

struct stream *green_legacy_locked(const struct stream *stream)
{
    return stream->green ? green_default_locked(stream->green) : stream->context->legacy;
}

CUresult green_synchronize_locked(struct green *green)
{
    return context_join_locked(green->device->primary, green, 0);
}
