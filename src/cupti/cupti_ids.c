/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's numbers of contexts, streams, devices and threads, its version, and texts of its errors.
 */
#include <string.h>

#include "cupti_driver.h"
#include "cupti_functions.h"
#include "cupti_hooks.h"

CUptiResult cuptiGetVersion(uint32_t *ret_version)
{
    if (!ret_version)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *ret_version = CUPTI_VERSION;
    return CUPTI_SUCCESS;
}

/* ---- objects ---- */

CUptiResult cuptiGetContextId(CUcontext context, uint32_t *ret_id)
{
    const struct cupti_driver *driver = cupti_driver();
    unsigned long long id;

    if (!driver)
        return CUPTI_ERROR_NOT_INITIALIZED;
    if (!ret_id)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (driver->context_id(context, &id) != CUDA_SUCCESS)
        return CUPTI_ERROR_INVALID_CONTEXT;
    *ret_id = (uint32_t)id;
    return CUPTI_SUCCESS;
}

/* Makes a context current for a question: the one that was current, in `ret_before`. */
static bool enter_context(const struct cupti_driver *driver, CUcontext context,
                          CUcontext *ret_before)
{
    return driver->get_current(ret_before) == CUDA_SUCCESS &&
           (!context || context == *ret_before || driver->set_current(context) == CUDA_SUCCESS);
}

static void leave_context(const struct cupti_driver *driver, CUcontext context, CUcontext before)
{
    if (context && context != before)
        driver->set_current(before);
}

CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *ret_id)
{
    const struct cupti_driver *driver = cupti_driver();
    CUcontext before;
    CUdevice device;
    CUresult result;

    if (!driver)
        return CUPTI_ERROR_NOT_INITIALIZED;
    if (!ret_id)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!enter_context(driver, context, &before))
        return CUPTI_ERROR_INVALID_CONTEXT;
    result = driver->context_device(&device);
    leave_context(driver, context, before);
    if (result != CUDA_SUCCESS)
        return CUPTI_ERROR_INVALID_CONTEXT;
    *ret_id = (uint32_t)device;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread,
                               uint32_t *ret_id)
{
    const struct cupti_driver *driver = cupti_driver();
    unsigned long long id;
    CUcontext before;
    CUresult result;

    if (!driver)
        return CUPTI_ERROR_NOT_INITIALIZED;
    if (!ret_id)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!enter_context(driver, context, &before))
        return CUPTI_ERROR_INVALID_CONTEXT;
    result =
        per_thread ? driver->stream_id_per_thread(stream, &id) : driver->stream_id(stream, &id);
    leave_context(driver, context, before);
    if (result != CUDA_SUCCESS)
        return CUPTI_ERROR_INVALID_STREAM;
    *ret_id = (uint32_t)id;
    return CUPTI_SUCCESS;
}

/* NVIDIA's library does not know the default stream of no context. */
CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *ret_id)
{
    if (!context && !stream)
        return CUPTI_ERROR_INVALID_STREAM;
    return cuptiGetStreamIdEx(context, stream, 0, ret_id);
}

CUptiResult cuptiSetThreadIdType(uint32_t type)
{
    if (type > 1)
        return CUPTI_ERROR_NOT_SUPPORTED;
    cupti_use_system_threads(type == 1);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetThreadIdType(uint32_t *ret_type)
{
    if (!ret_type)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *ret_type = cupti_uses_system_threads();
    return CUPTI_SUCCESS;
}

/* ---- what is supported ---- */

CUptiResult cuptiDeviceSupported(CUdevice device, int *ret_supported)
{
    if (!ret_supported)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *ret_supported = cupti_driver() != NULL;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiComputeCapabilitySupported(int major, int minor, int *ret_supported)
{
    return cuptiDeviceSupported(0, ret_supported);
}

/* ---- errors ---- */

static const struct {
    CUptiResult result;
    const char *name, *message;
} errors[] = {
    {CUPTI_SUCCESS, "CUPTI_SUCCESS", "no error"},
    {CUPTI_ERROR_INVALID_PARAMETER, "CUPTI_ERROR_INVALID_PARAMETER", "a parameter is not valid"},
    {CUPTI_ERROR_INVALID_DEVICE, "CUPTI_ERROR_INVALID_DEVICE", "there is no such device"},
    {CUPTI_ERROR_INVALID_CONTEXT, "CUPTI_ERROR_INVALID_CONTEXT", "there is no such context"},
    {CUPTI_ERROR_INVALID_OPERATION, "CUPTI_ERROR_INVALID_OPERATION",
     "the operation is not possible now"},
    {CUPTI_ERROR_OUT_OF_MEMORY, "CUPTI_ERROR_OUT_OF_MEMORY", "there is not enough memory"},
    {CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, "CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT",
     "the space for the result is too small"},
    {CUPTI_ERROR_MAX_LIMIT_REACHED, "CUPTI_ERROR_MAX_LIMIT_REACHED", "there are no more records"},
    {CUPTI_ERROR_NOT_INITIALIZED, "CUPTI_ERROR_NOT_INITIALIZED",
     "the CUDA driver of this program is not Funnel's"},
    {CUPTI_ERROR_QUEUE_EMPTY, "CUPTI_ERROR_QUEUE_EMPTY", "no id was pushed"},
    {CUPTI_ERROR_INVALID_STREAM, "CUPTI_ERROR_INVALID_STREAM", "there is no such stream"},
    {CUPTI_ERROR_INVALID_KIND, "CUPTI_ERROR_INVALID_KIND",
     "Funnel has no records of this kind (docs/profiling.md)"},
    {CUPTI_ERROR_NOT_SUPPORTED, "CUPTI_ERROR_NOT_SUPPORTED",
     "not supported through Funnel (docs/profiling.md); funnel run --direct profiles without it"},
    {CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS,
     "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS",
     "managed memory is not profiled through Funnel (docs/profiling.md)"},
    {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
     "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "this process is profiled already"},
    {CUPTI_ERROR_UNKNOWN, "CUPTI_ERROR_UNKNOWN", "an unknown error"},
};

#define ERRORS (sizeof(errors) / sizeof(*errors))

/* -1 = there is no such error. */
static int find_error(CUptiResult result)
{
    for (unsigned i = 0; i < ERRORS; i++)
        if (errors[i].result == result)
            return (int)i;
    return -1;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **ret_text)
{
    int error = find_error(result);

    if (!ret_text || error < 0)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *ret_text = errors[error].name;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **ret_text)
{
    int error = find_error(result);

    if (!ret_text || error < 0)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *ret_text = errors[error].message;
    return CUPTI_SUCCESS;
}

/* Errors are returned by each function, and none is kept. */
CUptiResult cuptiGetLastError(void)
{
    return CUPTI_SUCCESS;
}
