/* SPDX-License-Identifier: Apache-2.0 */
/* See device_change.h. */
#include "device_change.h"

#include <string.h>

#include "device_copy.h"
#include "server.h"
#include "sm_share.h"

/* Code, occupancies and sizes that the client has asked for are those of the model. */
static bool is_same_model(const struct device_record *one, const struct device_record *other)
{
    static const CUdevice_attribute attributes[] = {
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE};

    for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
        if (one->attributes[attributes[i]] != other->attributes[attributes[i]])
            return false;
    return !strcmp(one->name, other->name) && one->granularity == other->granularity &&
           one->total_memory == other->total_memory;
}

/* NULL when it is not one. */
static const struct device *only_device(const struct session *session)
{
    uint64_t used = session->device_mask;

    return used && !(used & (used - 1)) ? session_device(session, (unsigned)__builtin_ctzll(used))
                                        : NULL;
}

static enum move_obstacle find_obstacle(const struct session *session,
                                        const struct device_change *change)
{
    unsigned to = (unsigned)change->to->ordinal;

    if (!change->from)
        return OBSTACLE_DEVICES;
    if (change->from == change->to)
        return OBSTACLE_SAME_DEVICE;
    if (!is_same_model(&change->from->record, &change->to->record))
        return OBSTACLE_OTHER_MODEL;
    return session->limits.fixed_count || sm_share_barred(session, to) != CUDA_SUCCESS
               ? OBSTACLE_DEVICE_SHARE
               : OBSTACLE_NONE;
}

enum move_obstacle device_change_begin(struct session *session, uint32_t device,
                                       struct device_change *ret_change)
{
    if (device >= session->server->devices.count)
        return OBSTACLE_NO_DEVICE;
    ret_change->from = only_device(session);
    ret_change->to = session_device(session, device);
    enum move_obstacle obstacle = find_obstacle(session, ret_change);
    return obstacle ? obstacle : device_copies_make(session, ret_change->from, ret_change->to);
}

void device_change_undo(struct session *session, const struct device_change *change)
{
    device_copies_drop(session, change->from);
}
