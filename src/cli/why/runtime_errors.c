/* SPDX-License-Identifier: Apache-2.0 */
/* See runtime_errors.h. */
#include "runtime_errors.h"

#include <stddef.h>
#include <strings.h>

struct runtime_error {
    int error;
    const char *name;
};

/* Numbers that the driver does not have. */
static const struct runtime_error own_errors[] = {
    {9, "cudaErrorInvalidConfiguration"},
    {12, "cudaErrorInvalidPitchValue"},
    {13, "cudaErrorInvalidSymbol"},
    {16, "cudaErrorInvalidHostPointer"},
    {17, "cudaErrorInvalidDevicePointer"},
    {18, "cudaErrorInvalidTexture"},
    {19, "cudaErrorInvalidTextureBinding"},
    {20, "cudaErrorInvalidChannelDescriptor"},
    {21, "cudaErrorInvalidMemcpyDirection"},
    {22, "cudaErrorAddressOfConstant"},
    {23, "cudaErrorTextureFetchFailed"},
    {24, "cudaErrorTextureNotBound"},
    {25, "cudaErrorSynchronizationError"},
    {26, "cudaErrorInvalidFilterSetting"},
    {27, "cudaErrorInvalidNormSetting"},
    {28, "cudaErrorMixedDeviceExecution"},
    {31, "cudaErrorNotYetImplemented"},
    {32, "cudaErrorMemoryValueTooLarge"},
    {35, "cudaErrorInsufficientDriver"},
    {37, "cudaErrorInvalidSurface"},
    {43, "cudaErrorDuplicateVariableName"},
    {44, "cudaErrorDuplicateTextureName"},
    {45, "cudaErrorDuplicateSurfaceName"},
    {49, "cudaErrorIncompatibleDriverContext"},
    {52, "cudaErrorMissingConfiguration"},
    {53, "cudaErrorPriorLaunchFailure"},
    {65, "cudaErrorLaunchMaxDepthExceeded"},
    {66, "cudaErrorLaunchFileScopedTex"},
    {67, "cudaErrorLaunchFileScopedSurf"},
    {68, "cudaErrorSyncDepthExceeded"},
    {69, "cudaErrorLaunchPendingCountExceeded"},
    {98, "cudaErrorInvalidDeviceFunction"},
    {103, "cudaErrorSoftwareValidityNotEstablished"},
    {127, "cudaErrorStartupFailure"},
};

/* The driver has them by another name. */
static const struct runtime_error other_names[] = {
    {2, "cudaErrorMemoryAllocation"},         {3, "cudaErrorInitializationError"},
    {4, "cudaErrorCudartUnloading"},          {46, "cudaErrorDevicesUnavailable"},
    {200, "cudaErrorInvalidKernelImage"},     {201, "cudaErrorDeviceUninitialized"},
    {205, "cudaErrorMapBufferObjectFailed"},  {206, "cudaErrorUnmapBufferObjectFailed"},
    {209, "cudaErrorNoKernelImageForDevice"}, {216, "cudaErrorDeviceAlreadyInUse"},
    {400, "cudaErrorInvalidResourceHandle"},  {500, "cudaErrorSymbolNotFound"},
    {708, "cudaErrorSetOnActiveProcess"},     {719, "cudaErrorLaunchFailure"},
};

#define COUNT(rows) (sizeof(rows) / sizeof(*(rows)))

static int number_of_name(const struct runtime_error *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcasecmp(rows[i].name, name))
            return rows[i].error;
    return 0;
}

int runtime_error_of_name(const char *name)
{
    int error = number_of_name(own_errors, COUNT(own_errors), name);

    return error ? error : number_of_name(other_names, COUNT(other_names), name);
}

const char *runtime_error_name(int error)
{
    for (size_t i = 0; i < COUNT(own_errors); i++)
        if (own_errors[i].error == error)
            return own_errors[i].name;
    return NULL;
}
