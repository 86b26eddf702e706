/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that say what has been set. */
#include <string.h>

#include "reference.h"

#define DIMENSIONS 3

/* The state of a texture reference, if it is bound to a resource of this type. */
static CUresult begin_bound(CUtexref handle, CUresourcetype type, struct reference_state *ret_state)
{
    struct reference *reference;
    CUresult result = reference_begin(handle, false, &reference, ret_state);

    if (!result && (!ret_state->is_bound || ret_state->resource.resType != type))
        result = CUDA_ERROR_INVALID_VALUE;
    return result;
}

CUresult reference_cuTexRefGetAddress_v2(CUdeviceptr *pdptr, CUtexref hTexRef)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (result)
        return result;
    if (!state.is_bound)
        return CUDA_ERROR_INVALID_VALUE;
    if (state.resource.resType == CU_RESOURCE_TYPE_LINEAR)
        *pdptr = state.resource.res.linear.devPtr;
    else if (state.resource.resType == CU_RESOURCE_TYPE_PITCH2D)
        *pdptr = state.resource.res.pitch2D.devPtr;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult reference_cuTexRefGetArray(CUarray *phArray, CUtexref hTexRef)
{
    struct reference_state state;
    CUresult result = begin_bound(hTexRef, CU_RESOURCE_TYPE_ARRAY, &state);

    if (!result)
        *phArray = state.resource.res.array.hArray;
    return result;
}

CUresult reference_cuTexRefGetMipmappedArray(CUmipmappedArray *phMipmappedArray, CUtexref hTexRef)
{
    struct reference_state state;
    CUresult result = begin_bound(hTexRef, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, &state);

    if (!result)
        *phMipmappedArray = state.resource.res.mipmap.hMipmappedArray;
    return result;
}

CUresult reference_cuTexRefGetAddressMode(CUaddress_mode *pam, CUtexref hTexRef, int dim)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (!result && (dim < 0 || dim >= DIMENSIONS))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *pam = state.description.addressMode[dim];
    return result;
}

CUresult reference_cuTexRefGetFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (!result)
        *pfm = state.description.filterMode;
    return result;
}

CUresult reference_cuTexRefGetFormat(CUarray_format *pFormat, int *pNumChannels, CUtexref hTexRef)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (result)
        return result;
    if (pFormat)
        *pFormat = state.format;
    if (pNumChannels)
        *pNumChannels = (int)state.channels;
    return CUDA_SUCCESS;
}

CUresult reference_cuTexRefGetMipmapFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (!result)
        *pfm = state.description.mipmapFilterMode;
    return result;
}

CUresult reference_cuTexRefGetMipmapLevelBias(float *pbias, CUtexref hTexRef)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (!result)
        *pbias = state.description.mipmapLevelBias;
    return result;
}

CUresult reference_cuTexRefGetMipmapLevelClamp(float *pminMipmapLevelClamp,
                                               float *pmaxMipmapLevelClamp, CUtexref hTexRef)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (result)
        return result;
    *pminMipmapLevelClamp = state.description.minMipmapLevelClamp;
    *pmaxMipmapLevelClamp = state.description.maxMipmapLevelClamp;
    return CUDA_SUCCESS;
}

CUresult reference_cuTexRefGetMaxAnisotropy(int *pmaxAniso, CUtexref hTexRef)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (!result)
        *pmaxAniso = (int)state.description.maxAnisotropy;
    return result;
}

CUresult reference_cuTexRefGetBorderColor(float *pBorderColor, CUtexref hTexRef)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (!result && !pBorderColor)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        memcpy(pBorderColor, state.description.borderColor, sizeof(state.description.borderColor));
    return result;
}

CUresult reference_cuTexRefGetFlags(unsigned int *pFlags, CUtexref hTexRef)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (!result)
        *pFlags = state.description.flags;
    return result;
}

CUresult reference_cuSurfRefGetArray(CUarray *phArray, CUsurfref hSurfRef)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hSurfRef, true, &reference, &state);

    if (!result && !state.is_bound)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *phArray = state.resource.res.array.hArray;
    return result;
}
