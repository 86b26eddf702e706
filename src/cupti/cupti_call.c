/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_call.h. */
#include "cupti_call.h"

#include <string.h>

#include "cupti_driver.h"

bool cupti_call_begins(const struct profiler_call *call, const char *prefix)
{
    return !strncmp(call->name, prefix, strlen(prefix));
}

/* cuLaunchKernelEx() has its stream in the configuration. */
CUstream cupti_call_stream(const struct profiler_call *call)
{
    const CUlaunchConfig *const *configuration = call->arguments;
    CUstream stream = call->stream;

    if (cupti_call_begins(call, "cuLaunchKernelEx"))
        stream = (*configuration)->hStream;
    return stream || !strstr(call->name, "_ptsz") ? stream : CU_STREAM_PER_THREAD;
}

bool cupti_call_is_captured(const struct profiler_call *call)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUstream stream = cupti_call_stream(call);

    return stream &&
           cupti_driver()->capture_info(stream, &status, NULL, NULL, NULL, NULL) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}
