/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words in memory that a stream writes or waits for. A batch is sent word by word: the server has
 * to know each wait, to end it if the program dies.
 */
#include "client_mem_ops.h"

#include "client_capture.h"
#include "client_memory.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "managed_hooks.h"
#include "stream_commands.h"
#include "wire_calls.h"

static CUresult send_wait(uint64_t stream, const struct CUstreamMemOpWaitValueParams_st *wait)
{
    if (wait->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64) {
        const struct wire_cuStreamWaitValue64_v2 in = {
            .hStream = stream, .addr = wait->address, .value = wait->value64, .flags = wait->flags};

        return wire_cuStreamWaitValue64_v2(&client->channel, &in);
    }

    const struct wire_cuStreamWaitValue32_v2 in = {
        .hStream = stream, .addr = wait->address, .value = wait->value, .flags = wait->flags};

    return wire_cuStreamWaitValue32_v2(&client->channel, &in);
}

static CUresult send_write(uint64_t stream, const struct CUstreamMemOpWriteValueParams_st *write,
                           unsigned flags)
{
    if (write->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64) {
        const struct wire_cuStreamWriteValue64_v2 in = {
            .hStream = stream, .addr = write->address, .value = write->value64, .flags = flags};

        return wire_cuStreamWriteValue64_v2(&client->channel, &in);
    }

    const struct wire_cuStreamWriteValue32_v2 in = {
        .hStream = stream, .addr = write->address, .value = write->value, .flags = flags};

    return wire_cuStreamWriteValue32_v2(&client->channel, &in);
}

/* A barrier is part of every write that does not say otherwise; so a barrier of its own is that of
 * the next write. */
static CUresult send_all(uint64_t stream, unsigned count, const CUstreamBatchMemOpParams *ops)
{
    CUresult result = CUDA_SUCCESS;
    bool fenced = false;

    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        switch (ops[i].operation) {
        case CU_STREAM_MEM_OP_BARRIER:
            fenced = true;
            break;
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            result = send_wait(stream, &ops[i].waitValue);
            break;
        default:
            result = send_write(stream, &ops[i].writeValue, fenced ? 0 : ops[i].writeValue.flags);
            fenced = false;
        }
    }
    return result;
}

CUresult mem_ops_check(unsigned count, const CUstreamBatchMemOpParams *ops)
{
    CUresult result = graph_mem_ops_check(count, ops);

    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        CUdeviceptr address = 0;
        unsigned size = graph_mem_op_size(&ops[i], &address);
        enum place place = size ? address_map_place(address, size) : PLACE_DEVICE;

        if (place != PLACE_DEVICE && place != PLACE_PINNED)
            result = CUDA_ERROR_INVALID_VALUE;
    }
    return result;
}

static bool is_flushing_wait(const CUstreamBatchMemOpParams *op)
{
    return (op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
            op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64) &&
           op->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH;
}

static CUresult check_flushes(const struct device *device, unsigned count,
                              const CUstreamBatchMemOpParams *ops)
{
    if (device_attribute(device, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES))
        return CUDA_SUCCESS;
    for (unsigned i = 0; i < count; i++)
        if (is_flushing_wait(&ops[i]))
            return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

CUresult mem_ops_on(struct stream *stream, unsigned count, const CUstreamBatchMemOpParams *ops)
{
    CUresult result;

    stream_begin(stream);
    managed_work();
    result = send_all(stream->handle, count, ops);
    stream_end();
    return result;
}

CUresult client_cuStreamBatchMemOp_v2(CUstream hStream, unsigned count,
                                      CUstreamBatchMemOpParams *paramArray, unsigned flags)
{
    struct stream *stream;
    CUresult result = stream_enter(hStream, &stream);

    if (result == CUDA_SUCCESS && flags)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = mem_ops_check(count, paramArray);
    if (result == CUDA_SUCCESS)
        result = check_flushes(stream->device, count, paramArray);
    if (result != CUDA_SUCCESS || capture_takes_mem_ops(stream, count, paramArray, &result))
        return result;
    return mem_ops_on(stream, count, paramArray);
}

CUresult client_cuStreamWriteValue32_v2(CUstream hStream, CUdeviceptr addr, cuuint32_t value,
                                        unsigned flags)
{
    CUstreamBatchMemOpParams op = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
                                                  .address = addr,
                                                  .value = value,
                                                  .flags = flags}};

    return client_cuStreamBatchMemOp_v2(hStream, 1, &op, 0);
}

CUresult client_cuStreamWriteValue64_v2(CUstream hStream, CUdeviceptr addr, cuuint64_t value,
                                        unsigned flags)
{
    CUstreamBatchMemOpParams op = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64,
                                                  .address = addr,
                                                  .value64 = value,
                                                  .flags = flags}};

    return client_cuStreamBatchMemOp_v2(hStream, 1, &op, 0);
}

CUresult client_cuStreamWaitValue32_v2(CUstream hStream, CUdeviceptr addr, cuuint32_t value,
                                       unsigned flags)
{
    CUstreamBatchMemOpParams op = {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                                                 .address = addr,
                                                 .value = value,
                                                 .flags = flags}};

    return client_cuStreamBatchMemOp_v2(hStream, 1, &op, 0);
}

CUresult client_cuStreamWaitValue64_v2(CUstream hStream, CUdeviceptr addr, cuuint64_t value,
                                       unsigned flags)
{
    CUstreamBatchMemOpParams op = {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64,
                                                 .address = addr,
                                                 .value64 = value,
                                                 .flags = flags}};

    return client_cuStreamBatchMemOp_v2(hStream, 1, &op, 0);
}
