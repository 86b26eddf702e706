/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkpoint: an event of the server's own in a stream. The stream has reached the checkpoint
 * when all work before it is done. All is for any thread, in the device's context.
 */
#pragma once

#include <stdbool.h>

#include "spare_events.h"

struct checkpoint {
    const struct device *device;
    CUevent event;
};

/* Takes an event for a checkpoint that checkpoint_set() puts into a stream. What the driver says.
 */
static inline CUresult checkpoint_take(struct checkpoint *checkpoint, const struct device *device)
{
    checkpoint->device = device;
    checkpoint->event = NULL;
    return spare_event_take(device, &checkpoint->event);
}

/* Puts the checkpoint behind all that the stream has. One that is set already moves there. */
static inline CUresult checkpoint_set(const struct checkpoint *checkpoint, CUstream stream)
{
    return driver.cuEventRecord(checkpoint->event, stream);
}

static inline bool checkpoint_is_reached(const struct checkpoint *checkpoint)
{
    return driver.cuEventQuery(checkpoint->event) != CUDA_ERROR_NOT_READY;
}

/* The event need not be reached, and goes back. Without an event it does nothing. */
static inline void checkpoint_drop(const struct checkpoint *checkpoint)
{
    if (checkpoint->event)
        spare_event_keep(checkpoint->device, checkpoint->event);
}

/* Takes and sets a checkpoint. Unless the result is CUDA_SUCCESS, there is none to drop. */
static inline CUresult checkpoint_make(struct checkpoint *checkpoint, const struct device *device,
                                       CUstream stream)
{
    CUresult result = checkpoint_take(checkpoint, device);

    if (result != CUDA_SUCCESS)
        return result;
    result = checkpoint_set(checkpoint, stream);
    if (result != CUDA_SUCCESS)
        checkpoint_drop(checkpoint);
    return result;
}
