/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words in memory that a stream writes or waits for.
 */
#include <string.h>

#include "soft_context.h"
#include "soft_memory.h"
#include "soft_stream.h"
#include "stream_prepare.h"
#include "watch_operation.h"

/* Written or waited for one after the other. */
struct batch {
    struct operation operation;
    unsigned count, next;
    CUstreamBatchMemOpParams ops[];
};

static bool compare_values(uint64_t now, uint64_t wanted, unsigned flags, bool is_wide)
{
    uint64_t mask = is_wide ? UINT64_MAX : UINT32_MAX;

    switch (flags) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return is_wide ? (int64_t)(now - wanted) >= 0
                       : (int32_t)((uint32_t)now - (uint32_t)wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == (wanted & mask);
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & wanted & mask) != 0;
    default:
        return (~(now | wanted) & mask) != 0;
    }
}

static bool wait_is_over(const struct CUstreamMemOpWaitValueParams_st *wait)
{
    bool is_wide = wait->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
    uint64_t now = is_wide ? __atomic_load_n((uint64_t *)wait->address, __ATOMIC_ACQUIRE)
                           : __atomic_load_n((uint32_t *)wait->address, __ATOMIC_ACQUIRE);

    return compare_values(now, is_wide ? wait->value64 : wait->value, wait->flags, is_wide);
}

/* True when the next one can begin. Whatever is written is seen by all at once. */
static bool do_op(const CUstreamBatchMemOpParams *op)
{
    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return wait_is_over(&op->waitValue);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        __atomic_store_n((uint32_t *)op->writeValue.address, op->writeValue.value,
                         __ATOMIC_RELEASE);
        return true;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        __atomic_store_n((uint64_t *)op->writeValue.address, op->writeValue.value64,
                         __ATOMIC_RELEASE);
        return true;
    default:
        return true;
    }
}

/* True when all of it is done. */
static bool advance(struct batch *batch)
{
    while (batch->next < batch->count && do_op(&batch->ops[batch->next]))
        batch->next++;
    return batch->next == batch->count;
}

/* Nothing here costs more than a look. */
static bool batch_holds(struct operation *operation, bool thoroughly)
{
    (void)thoroughly;
    return advance((struct batch *)operation);
}

static bool batch_start_locked(struct operation *operation)
{
    return watch_until_locked(operation, batch_holds);
}

static const struct operation_type batch_type = {.start_locked = batch_start_locked};

static CUresult check_locked(unsigned count, const CUstreamBatchMemOpParams *ops)
{
    CUresult result = graph_mem_ops_check(count, ops);

    for (unsigned i = 0; !result && i < count; i++) {
        bool is_wait = ops[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
                       ops[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
        CUdeviceptr address = 0;
        unsigned size = graph_mem_op_size(&ops[i], &address);

        if (size && !memory_covers_locked(address, size))
            result = CUDA_ERROR_INVALID_VALUE;
        else if (is_wait && ops[i].waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH)
            result = CUDA_ERROR_NOT_SUPPORTED;
    }
    return result;
}

CUresult mem_ops_prepare_locked(unsigned count, const CUstreamBatchMemOpParams *ops,
                                struct operation **ret_operation)
{
    struct batch *batch;
    CUresult result = check_locked(count, ops);

    if (result)
        return result;
    batch = operation_create(sizeof(*batch) + count * sizeof(*ops), &batch_type);
    if (!batch)
        return CUDA_ERROR_OUT_OF_MEMORY;
    batch->count = count;
    if (count)
        memcpy(batch->ops, ops, count * sizeof(*ops));
    *ret_operation = &batch->operation;
    return CUDA_SUCCESS;
}

CUresult soft_cuStreamBatchMemOp_v2(CUstream handle, unsigned int count,
                                    CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
    struct operation *operation;
    struct stream *stream;
    SOFT_LOCKED;
    CUresult result = stream_work_locked(handle, &stream);

    if (result)
        return result;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (capture_is_on(&stream->capture))
        return capture_mem_ops_locked(&stream->capture, count, paramArray);
    result = mem_ops_prepare_locked(count, paramArray, &operation);
    if (result)
        return result;
    schedule_enqueue_locked(stream, operation);
    operation_unref_locked(operation);
    return CUDA_SUCCESS;
}

static CUresult submit_wait(CUstream stream, struct CUstreamMemOpWaitValueParams_st wait)
{
    CUstreamBatchMemOpParams op = {.waitValue = wait};

    return soft_cuStreamBatchMemOp_v2(stream, 1, &op, 0);
}

static CUresult submit_write(CUstream stream, struct CUstreamMemOpWriteValueParams_st write)
{
    CUstreamBatchMemOpParams op = {.writeValue = write};

    return soft_cuStreamBatchMemOp_v2(stream, 1, &op, 0);
}

CUresult soft_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                     unsigned int flags)
{
    return submit_wait(stream, (struct CUstreamMemOpWaitValueParams_st){
                                   .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                                   .address = addr,
                                   .value = value,
                                   .flags = flags,
                               });
}

CUresult soft_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                     unsigned int flags)
{
    return submit_wait(stream, (struct CUstreamMemOpWaitValueParams_st){
                                   .operation = CU_STREAM_MEM_OP_WAIT_VALUE_64,
                                   .address = addr,
                                   .value64 = value,
                                   .flags = flags,
                               });
}

CUresult soft_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                      unsigned int flags)
{
    return submit_write(stream, (struct CUstreamMemOpWriteValueParams_st){
                                    .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
                                    .address = addr,
                                    .value = value,
                                    .flags = flags,
                                });
}

CUresult soft_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                      unsigned int flags)
{
    return submit_write(stream, (struct CUstreamMemOpWriteValueParams_st){
                                    .operation = CU_STREAM_MEM_OP_WRITE_VALUE_64,
                                    .address = addr,
                                    .value64 = value,
                                    .flags = flags,
                                });
}
