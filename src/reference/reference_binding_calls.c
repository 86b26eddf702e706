/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that bind references to arrays and to memory. */
#include "cuda_array.h"
#include "reference.h"

/* CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT of every device. */
#define TEXTURE_ALIGNMENT 512u
#define PITCH_ALIGNMENT 32u /* CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT */

/* The widest texture on memory has 2^28 elements of 16 bytes. */
#define LINEAR_BYTES_MAX (16ull << 28)

static CUresult bind_array(struct reference *reference, struct reference_state *state,
                           const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    state->is_bound = true;
    state->format = descriptor->Format;
    state->channels = descriptor->NumChannels;
    return reference_end(reference, state);
}

CUresult reference_cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (!result && Flags & ~CU_TRSA_OVERRIDE_FORMAT)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = reference_backend.describe_array(hArray, &descriptor);
    if (result)
        return result;
    state.resource = (CUDA_RESOURCE_DESC){
        .resType = CU_RESOURCE_TYPE_ARRAY,
        .res.array.hArray = hArray,
    };
    return bind_array(reference, &state, &descriptor);
}

CUresult reference_cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray,
                                             unsigned int Flags)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (!result && Flags & ~CU_TRSA_OVERRIDE_FORMAT)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = reference_backend.describe_mipmap(hMipmappedArray, &descriptor);
    if (result)
        return result;
    state.resource = (CUDA_RESOURCE_DESC){
        .resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
        .res.mipmap.hMipmappedArray = hMipmappedArray,
    };
    return bind_array(reference, &state, &descriptor);
}

/* Textures begin where hardware can: the program's kernels add the offset. */
CUresult reference_cuTexRefSetAddress_v2(size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr dptr,
                                         size_t bytes)
{
    size_t offset = dptr % TEXTURE_ALIGNMENT;
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (!result && ((offset && !ByteOffset) || bytes > LINEAR_BYTES_MAX))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result)
        return result;
    state.is_bound = dptr != 0;
    state.resource = (CUDA_RESOURCE_DESC){
        .resType = CU_RESOURCE_TYPE_LINEAR,
        .res.linear = {dptr - offset, state.format, state.channels, bytes + offset},
    };
    result = reference_end(reference, &state);
    if (!result && ByteOffset)
        *ByteOffset = offset;
    return result;
}

CUresult reference_cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc,
                                           CUdeviceptr dptr, size_t Pitch)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    if (result)
        return result;
    if (dptr % TEXTURE_ALIGNMENT || Pitch % PITCH_ALIGNMENT ||
        !cuda_texel_size(desc->Format, desc->NumChannels))
        return CUDA_ERROR_INVALID_VALUE;
    state.is_bound = true;
    state.format = desc->Format;
    state.channels = desc->NumChannels;
    state.resource = (CUDA_RESOURCE_DESC){
        .resType = CU_RESOURCE_TYPE_PITCH2D,
        .res.pitch2D = {dptr, desc->Format, desc->NumChannels, desc->Width, desc->Height, Pitch},
    };
    return reference_end(reference, &state);
}

/* What a reference of a module is bound to, all of its kernels read. */
CUresult reference_cuParamSetTexRef(CUfunction hfunc, int texunit, CUtexref hTexRef)
{
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hTexRef, false, &reference, &state);

    (void)hfunc;
    if (!result && (texunit != CU_PARAM_TR_DEFAULT || !reference->module))
        result = CUDA_ERROR_INVALID_VALUE;
    return result;
}

CUresult reference_cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    struct reference_state state;
    struct reference *reference;
    CUresult result = reference_begin(hSurfRef, true, &reference, &state);

    if (!result && Flags)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = reference_backend.describe_array(hArray, &descriptor);
    if (!result && !(descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result)
        return result;
    state.resource = (CUDA_RESOURCE_DESC){
        .resType = CU_RESOURCE_TYPE_ARRAY,
        .res.array.hArray = hArray,
    };
    return bind_array(reference, &state, &descriptor);
}
