/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks of the subsystems above contexts and streams: at the begin and end of a context, and
 * after the program has waited for work. The table lists them in the order in which a context's
 * objects are destroyed. The top of the driver defines it (soft_parts.c), so core does not depend
 * on them.
 */
#pragma once

struct context;
struct device;

/* All functions are called with soft_lock held; each may be NULL. */
struct soft_part {
    /* The context has become active and holds nothing yet. */
    void (*context_begins_locked)(struct context *context);
    /* The context is idle: destroys the subsystem's objects in it. */
    void (*context_ends_locked)(struct context *context);
    /* The program has waited for work of the device. */
    void (*synchronized_locked)(const struct device *device);
    /* Gives memory back to the device that nothing uses. */
    void (*release_locked)(const struct device *device);
};

/* Ends with NULL. */
extern const struct soft_part *const soft_parts[];

void parts_context_begins_locked(struct context *context);
void parts_context_ends_locked(struct context *context);
void parts_synchronized_locked(const struct device *device);
void parts_release_locked(const struct device *device);
