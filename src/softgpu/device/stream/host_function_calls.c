/* SPDX-License-Identifier: Apache-2.0 */
/* See host_function_calls.h. */
#include "host_function_calls.h"

#include "soft_context.h"
#include "soft_stream.h"
struct host_function {
    struct operation operation;
    CUhostFn function;
    CUstreamCallback callback;
    CUstream handle; /* what the callback is told */
    void *user;
};

static bool host_function_start_locked(struct operation *operation)
{
    worker_submit_locked(operation);
    return false;
}

static void host_function_work(struct operation *operation)
{
    struct host_function *host = (struct host_function *)operation;

    if (host->function)
        host->function(host->user);
    else
        host->callback(host->handle, operation->context->error, host->user);
}

static const struct operation_type function_type = {
    .start_locked = host_function_start_locked,
    .work = host_function_work,
};

/* A callback is told of the context's failure; a function is not called any more. */
static const struct operation_type callback_type = {
    .start_locked = host_function_start_locked,
    .work = host_function_work,
    .always = true,
};

/* Nothing of a context: it is called whatever has become of one. */
static const struct operation_type later_type = {
    .start_locked = host_function_start_locked,
    .work = host_function_work,
    .always = true,
};

static CUresult create_operation(const struct host_function *what,
                                 const struct operation_type *type,
                                 struct operation **ret_operation)
{
    struct host_function *host = operation_create(sizeof(*host), type);

    if (!host)
        return CUDA_ERROR_OUT_OF_MEMORY;
    host->function = what->function;
    host->callback = what->callback;
    host->handle = what->handle;
    host->user = what->user;
    *ret_operation = &host->operation;
    return CUDA_SUCCESS;
}

CUresult host_function_prepare_locked(const CUDA_HOST_NODE_PARAMS *host,
                                      struct operation **ret_operation)
{
    const struct host_function what = {.function = host->fn, .user = host->userData};

    return create_operation(&what, &function_type, ret_operation);
}

/* Where there is no memory, here is better than never. */
void host_function_later_locked(struct operation *behind, CUhostFn function, void *user)
{
    const struct host_function what = {.function = function, .user = user};
    struct operation *operation;

    if (create_operation(&what, &later_type, &operation)) {
        function(user);
        return;
    }
    operation_depend_locked(operation, behind);
    schedule_begin_locked(NULL, operation);
    operation_unref_locked(operation);
}

static CUresult submit_function(const struct host_function *what, const struct operation_type *type)
{
    struct operation *operation;
    struct stream *stream;
    SOFT_LOCKED;
    CUresult result = stream_work_locked(what->handle, &stream);

    if (!result && what->callback)
        result = capture_refuse_locked(&stream->capture);
    if (!result && capture_is_on(&stream->capture))
        return capture_host_locked(&stream->capture, what->function, what->user);
    if (!result)
        result = create_operation(what, type, &operation);
    if (result)
        return result;
    schedule_enqueue_locked(stream, operation);
    operation_unref_locked(operation);
    return CUDA_SUCCESS;
}

CUresult soft_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    struct host_function what = {.function = fn, .handle = hStream, .user = userData};

    return fn ? submit_function(&what, &function_type) : CUDA_ERROR_INVALID_VALUE;
}

CUresult soft_cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
                                  unsigned int flags)
{
    struct host_function what = {.callback = callback, .handle = hStream, .user = userData};

    return callback && !flags ? submit_function(&what, &callback_type) : CUDA_ERROR_INVALID_VALUE;
}
