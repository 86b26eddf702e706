/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds references of modules, and has the server bind them. What the program sets stays here until
 * a reference is bound; from then on each change goes to the server.
 */
#include "cleanup.h"
#include "client_array.h"
#include "client_module.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "reference.h"
#include "stream_wait.h"
#include "wire_calls.h"

static CUresult enter(void)
{
    struct context *context;

    return context_enter(&context);
}

static CUresult describe(const struct array *array, CUDA_ARRAY3D_DESCRIPTOR *ret_descriptor)
{
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    *ret_descriptor = array->descriptor;
    return CUDA_SUCCESS;
}

static CUresult describe_array(CUarray handle, CUDA_ARRAY3D_DESCRIPTOR *ret_descriptor)
{
    return describe(array_lookup(handle), ret_descriptor);
}

static CUresult describe_mipmap(CUmipmappedArray handle, CUDA_ARRAY3D_DESCRIPTOR *ret_descriptor)
{
    return describe(array_lookup_mipmap(handle), ret_descriptor);
}

/* ---- binding ---- */

static const struct array *array_of(const CUDA_RESOURCE_DESC *resource)
{
    return resource->resType == CU_RESOURCE_TYPE_ARRAY
               ? array_lookup(resource->res.array.hArray)
               : array_lookup_mipmap(resource->res.mipmap.hMipmappedArray);
}

static bool is_on_array(const CUDA_RESOURCE_DESC *resource)
{
    return resource->resType == CU_RESOURCE_TYPE_ARRAY ||
           resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
}

static CUresult bind_array(const struct reference *reference, const struct reference_state *state)
{
    const struct module *module = reference->module;
    const struct array *array = array_of(&state->resource);
    const struct wire_fnArrayReference in = {
        .library = module->handle,
        .array = array ? array->handle : 0,
        .surface = reference->is_surface,
        .description = &state->description,
        .description_size = reference->is_surface ? 0 : sizeof(state->description),
        .name = reference->name,
    };

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    return wire_fnArrayReference(&client->channel, &in);
}

/* Programs may say that memory is longer than it is: the runtime does, unless they say how long. */
static uint64_t bytes_there(uint64_t address, uint64_t bytes)
{
    CUdeviceptr start;
    size_t size;

    if (client_cuMemGetAddressRange_v2(&start, &size, address) != CUDA_SUCCESS)
        return bytes;
    return bytes < start + size - address ? bytes : start + size - address;
}

static CUresult bind_memory(const struct reference *reference, const struct reference_state *state)
{
    const struct module *module = reference->module;
    const CUDA_RESOURCE_DESC *r = &state->resource;
    struct wire_fnMemoryReference in = {
        .library = module->handle,
        .address = r->res.linear.devPtr,
        .format = state->format,
        .channels = state->channels,
        .width = bytes_there(r->res.linear.devPtr, r->res.linear.sizeInBytes),
        .description = &state->description,
        .description_size = sizeof(state->description),
        .name = reference->name,
    };

    if (r->resType == CU_RESOURCE_TYPE_PITCH2D) {
        in.address = r->res.pitch2D.devPtr;
        in.width = r->res.pitch2D.width;
        in.height = r->res.pitch2D.height;
        in.pitch = r->res.pitch2D.pitchInBytes;
    }
    return wire_fnMemoryReference(&client->channel, &in);
}

/* The server ends an array that the program has destroyed when the reference is bound anew. A
 * kernel that still reads it would end the context of all clients. */
static CUresult await_readers(const struct reference *reference)
{
    const struct module *module = reference->module;
    const struct reference_state *state = &reference->state;

    if (!state->is_bound || !is_on_array(&state->resource) || array_of(&state->resource))
        return CUDA_SUCCESS;
    return stream_drain_device(module->context->device);
}

static CUresult bind(struct reference *reference, const struct reference_state *state)
{
    CUresult result = await_readers(reference);

    if (result != CUDA_SUCCESS)
        return result;
    return is_on_array(&state->resource) ? bind_array(reference, state)
                                         : bind_memory(reference, state);
}

const struct reference_backend reference_backend = {
    .enter = enter,
    .describe_array = describe_array,
    .describe_mipmap = describe_mipmap,
    .bind = bind,
};

/* ---- references of modules ---- */

static struct reference *find_known(const struct module *module, const char *name, bool is_surface)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    return references_find(&module->references, name, is_surface);
}

/* Two threads may ask for one at the same time. */
static struct reference *add_known(struct module *module, const char *name, bool is_surface)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    struct reference *known = references_find(&module->references, name, is_surface);

    return known ? known : references_add(&module->references, module, name, is_surface);
}

/* Another server could not bind it as it was bound. */
static CUresult ask_for(struct module *module, const char *name, bool is_surface,
                        struct reference **ret_reference)
{
    const struct wire_fnReferenceFind in = {
        .library = module->handle, .surface = is_surface, .name = name};
    CUresult result = wire_fnReferenceFind(&client->channel, &in);

    if (result != CUDA_SUCCESS)
        return result;
    module->state = WIRE_STATE_LOST;
    *ret_reference = add_known(module, name, is_surface);
    return *ret_reference ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult get_reference(CUmodule handle, const char *name, bool is_surface,
                              uint64_t *ret_handle)
{
    struct module *module = module_lookup(handle);
    struct reference *reference;
    CUresult result = enter();

    if (result == CUDA_SUCCESS && !module)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result != CUDA_SUCCESS)
        return result;
    reference = find_known(module, name, is_surface);
    if (!reference)
        result = ask_for(module, name, is_surface, &reference);
    if (result == CUDA_SUCCESS)
        *ret_handle = reference->handle;
    return result;
}

CUresult client_cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name)
{
    uint64_t handle;
    CUresult result = get_reference(hmod, name, false, &handle);

    if (result == CUDA_SUCCESS)
        *pTexRef = (CUtexref)(uintptr_t)handle;
    return result;
}

CUresult client_cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name)
{
    uint64_t handle;
    CUresult result = get_reference(hmod, name, true, &handle);

    if (result == CUDA_SUCCESS)
        *pSurfRef = (CUsurfref)(uintptr_t)handle;
    return result;
}
