/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that say how a texture reference is sampled. */
#include <string.h>

#include "cuda_array.h"
#include "reference.h"

#define DIMENSIONS 3
#define ANISOTROPY_MAX 16u
#define KNOWN_FLAGS                                                            \
    (CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | \
     CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP)

static bool is_filter(CUfilter_mode mode)
{
    return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR;
}

CUresult reference_cuTexRefCreate(CUtexref *pTexRef)
{
    CUresult result = reference_backend.enter();
    struct reference *reference = result ? NULL : reference_create(NULL, "", false);

    if (!reference)
        return result ? result : CUDA_ERROR_OUT_OF_MEMORY;
    *pTexRef = (CUtexref)(uintptr_t)reference->handle;
    return CUDA_SUCCESS;
}

/* Those of a module end with it. */
CUresult reference_cuTexRefDestroy(CUtexref hTexRef)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (!result && !reference->module)
        reference_destroy(reference);
    return result;
}

CUresult reference_cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (result)
        return result;
    if (!cuda_texel_size(fmt, (unsigned)NumPackedComponents))
        return CUDA_ERROR_INVALID_VALUE;
    state.format = fmt;
    state.channels = (unsigned)NumPackedComponents;
    if (state.is_bound && state.resource.resType == CU_RESOURCE_TYPE_LINEAR) {
        state.resource.res.linear.format = state.format;
        state.resource.res.linear.numChannels = state.channels;
    }
    return reference_end(reference, &state);
}

CUresult reference_cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (result)
        return result;
    if (dim < 0 || dim >= DIMENSIONS || am > CU_TR_ADDRESS_MODE_BORDER)
        return CUDA_ERROR_INVALID_VALUE;
    state.description.addressMode[dim] = am;
    return reference_end(reference, &state);
}

CUresult reference_cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (result)
        return result;
    if (!is_filter(fm))
        return CUDA_ERROR_INVALID_VALUE;
    state.description.filterMode = fm;
    return reference_end(reference, &state);
}

CUresult reference_cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (result)
        return result;
    if (!is_filter(fm))
        return CUDA_ERROR_INVALID_VALUE;
    state.description.mipmapFilterMode = fm;
    return reference_end(reference, &state);
}

CUresult reference_cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (result)
        return result;
    state.description.mipmapLevelBias = bias;
    return reference_end(reference, &state);
}

CUresult reference_cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp,
                                               float maxMipmapLevelClamp)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (result)
        return result;
    state.description.minMipmapLevelClamp = minMipmapLevelClamp;
    state.description.maxMipmapLevelClamp = maxMipmapLevelClamp;
    return reference_end(reference, &state);
}

CUresult reference_cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (result)
        return result;
    state.description.maxAnisotropy = maxAniso < ANISOTROPY_MAX ? maxAniso : ANISOTROPY_MAX;
    return reference_end(reference, &state);
}

CUresult reference_cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (result || !pBorderColor)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    memcpy(state.description.borderColor, pBorderColor, sizeof(state.description.borderColor));
    return reference_end(reference, &state);
}

CUresult reference_cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (result || Flags & ~(unsigned)KNOWN_FLAGS)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    state.description.flags = Flags;
    return reference_end(reference, &state);
}
