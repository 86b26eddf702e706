/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attachment of managed memory. It means something where host and device take turns. The
 * kernels of a device whose concurrentManagedAccess is 0 have no access to what is the host's.
 */
#include "managed_attach.h"

#include "cuda_managed.h"
#include "soft_context.h"
#include "soft_device.h"
#include "soft_stream.h"

struct attach {
    struct operation operation;
    uint64_t address;
    unsigned long long id; /* of the memory, which may be gone */
    unsigned access;
};

static void set_access_locked(struct memory *memory, unsigned access)
{
    if (memory->access != access)
        memory_set_access_locked(memory, access);
}

static bool attach_start_locked(struct operation *operation)
{
    const struct attach *attach = (const struct attach *)operation;
    struct memory *memory = memory_find_locked(attach->address);

    if (memory && memory->id == attach->id)
        set_access_locked(memory, attach->access);
    return true;
}

static const struct operation_type attach_type = {.start_locked = attach_start_locked};

static unsigned access_for(unsigned flags)
{
    return managed_takes_turns() && flags == CU_MEM_ATTACH_HOST ? 0 : SG_READ | SG_WRITE;
}

void managed_attach_first_locked(struct memory *memory, unsigned flags)
{
    set_access_locked(memory, access_for(flags));
}

CUresult managed_attach_locked(struct memory *memory, unsigned flags, struct stream *stream)
{
    struct attach *attach = operation_create(sizeof(*attach), &attach_type);

    if (!attach)
        return CUDA_ERROR_OUT_OF_MEMORY;
    attach->address = memory->address;
    attach->id = memory->id;
    attach->access = access_for(flags);
    schedule_enqueue_locked(stream, &attach->operation);
    operation_unref_locked(&attach->operation);
    return CUDA_SUCCESS;
}
