/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a device: sets of virtual SMs, and the streams whose kernels run on no others. The
 * divisions are an H100's: by eight, or by two when the caller gives up co-scheduling.
 */
#include <stdlib.h>
#include <string.h>

#include "device_sync.h"
#include "soft_context.h"
#include "soft_stream.h"

#define COSCHEDULED 8u
#define SMALLEST 2u
#define KNOWN_FLAGS                                    \
    (CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | \
     CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE)

/* What the opaque bytes of a resource hold. */
struct sm_set {
    uint32_t device_number;
    uint64_t sms[SG_MAX_SMS / 64];
};

/* A descriptor, or a green context, which keeps the primary one alive. */
struct part {
    uint64_t handle;
    struct device *device;
    struct sm_set set;
};

_Static_assert(sizeof(struct sm_set) <= sizeof(((CUdevResource *)0)->_internal_padding),
               "a set of SMs fits into a resource");

static unsigned set_count(const struct sm_set *set)
{
    unsigned count = 0;

    for (unsigned i = 0; i < SG_MAX_SMS / 64; i++)
        count += __builtin_popcountll(set->sms[i]);
    return count;
}

static void write_resource(CUdevResource *resource, const struct sm_set *set)
{
    memset(resource, 0, sizeof(*resource));
    resource->type = CU_DEV_RESOURCE_TYPE_SM;
    memcpy(resource->_internal_padding, set, sizeof(*set));
    resource->sm.smCount = set_count(set);
    resource->sm.minSmPartitionSize = SMALLEST;
    resource->sm.smCoscheduledAlignment = COSCHEDULED;
}

static bool read_resource(const CUdevResource *resource, struct sm_set *ret_set)
{
    if (resource->type != CU_DEV_RESOURCE_TYPE_SM)
        return false;
    memcpy(ret_set, resource->_internal_padding, sizeof(*ret_set));
    return set_count(ret_set) > 0 && set_count(ret_set) == resource->sm.smCount;
}

CUresult soft_cuDeviceGetDevResource(CUdevice device, CUdevResource *resource,
                                     CUdevResourceType type)
{
    struct device *found = device_get(device);
    struct sm_set set = {0};

    if (!resource)
        return CUDA_ERROR_INVALID_VALUE;
    if (!found)
        return CUDA_ERROR_INVALID_DEVICE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    set.device_number = found->number;
    for (unsigned sm = 0; sm < found->sm_count; sm++)
        set.sms[sm / 64] |= 1ull << sm % 64;
    write_resource(resource, &set);
    return CUDA_SUCCESS;
}

/* Moves the lowest `count` SMs of one set into another. */
static void take(struct sm_set *from, struct sm_set *to, unsigned count)
{
    to->device_number = from->device_number;
    for (unsigned sm = 0; sm < SG_MAX_SMS && count > 0; sm++) {
        uint64_t bit = 1ull << sm % 64;

        if (!(from->sms[sm / 64] & bit))
            continue;
        from->sms[sm / 64] &= ~bit;
        to->sms[sm / 64] |= bit;
        count--;
    }
}

static unsigned group_size(unsigned least, unsigned flags)
{
    unsigned unit =
        flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING ? SMALLEST : COSCHEDULED;

    return least <= unit ? unit : (least + unit - 1) / unit * unit;
}

CUresult soft_cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
                                          const CUdevResource *input, CUdevResource *remaining,
                                          unsigned int useFlags, unsigned int minCount)
{
    struct sm_set left;
    unsigned possible, wanted, size;

    if (!nbGroups || !input || (useFlags & ~KNOWN_FLAGS))
        return CUDA_ERROR_INVALID_VALUE;
    if (!read_resource(input, &left))
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (minCount > set_count(&left))
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    size = group_size(minCount, useFlags);
    possible = set_count(&left) / size;
    if (possible == 0)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    wanted = result && *nbGroups < possible ? *nbGroups : possible;
    for (unsigned i = 0; i < wanted; i++) {
        struct sm_set group = {0};

        take(&left, &group, size);
        if (result)
            write_resource(&result[i], &group);
    }
    *nbGroups = wanted;
    if (remaining && set_count(&left))
        write_resource(remaining, &left);
    else if (remaining)
        memset(remaining, 0, sizeof(*remaining));
    return CUDA_SUCCESS;
}

/* Several resources of one device are one part. */
static CUresult join(const CUdevResource *resources, unsigned count, struct sm_set *ret_set)
{
    struct sm_set all = {0};

    for (unsigned i = 0; i < count; i++) {
        struct sm_set set;

        if (!read_resource(&resources[i], &set))
            return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        if (i > 0 && set.device_number != all.device_number)
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        all.device_number = set.device_number;
        for (unsigned word = 0; word < SG_MAX_SMS / 64; word++)
            all.sms[word] |= set.sms[word];
    }
    *ret_set = all;
    return CUDA_SUCCESS;
}

static CUresult part_create(enum soft_handle_type type, const struct part *like,
                            struct part **ret_part)
{
    struct part *part = malloc(sizeof(*part));

    if (!part)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *part = *like;
    part->handle = soft_add(type, part);
    if (!part->handle) {
        free(part);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_part = part;
    return CUDA_SUCCESS;
}

static void synchronize_primary(struct device *device)
{
    SOFT_LOCKED;
    device_sync_emulate_locked(device->primary);
}

/* Descriptors have no end in the API; they live as long as the process. */
CUresult soft_cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources,
                                        unsigned int nbResources)
{
    struct part like = {0}, *part;
    CUresult result;

    if (!phDesc || !resources || nbResources == 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = join(resources, nbResources, &like.set);
    if (!result)
        result = part_create(SOFT_RESOURCE, &like, &part);
    if (!result)
        *phDesc = (CUdevResourceDesc)part->handle;
    return result;
}

CUresult soft_cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
                               unsigned int flags)
{
    struct device *device = device_get(dev);
    struct part *resource = soft_get(SOFT_RESOURCE, desc);
    struct part like, *green;
    CUcontext primary;
    CUresult result;

    if (!phCtx || flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!resource || resource->set.device_number != device->number)
        return CUDA_ERROR_INVALID_VALUE;
    result = soft_cuDevicePrimaryCtxRetain(&primary, dev);
    if (result)
        return result;
    synchronize_primary(device);
    like = (struct part){.device = device, .set = resource->set};
    result = part_create(SOFT_GREEN, &like, &green);
    if (result)
        soft_cuDevicePrimaryCtxRelease_v2(dev);
    else
        *phCtx = (CUgreenCtx)green->handle;
    return result;
}

/* Streams that were made in it keep their SMs. */
CUresult soft_cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    struct part *green = handles_remove(&soft_handles, SOFT_GREEN, (uintptr_t)hCtx);
    CUdevice device;

    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    device = green->device->ordinal;
    free(green);
    return soft_cuDevicePrimaryCtxRelease_v2(device);
}

CUresult soft_cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags,
                                     int priority)
{
    struct part *green;
    struct stream *stream;
    SOFT_LOCKED;

    if (!phStream || flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    green = soft_get(SOFT_GREEN, greenCtx);
    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;

    struct context *context = green->device->primary;

    if (context->error)
        return context->error;
    if (!context->active)
        return CUDA_ERROR_INVALID_CONTEXT;
    stream = stream_create_locked(context, flags, priority);
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(stream->sms, green->set.sms, sizeof(stream->sms));
    *phStream = (CUstream)stream->handle;
    return CUDA_SUCCESS;
}
