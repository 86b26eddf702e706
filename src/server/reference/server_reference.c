/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the driver's references, and binds them. An array that a reference is bound to lives as
 * long as that, because kernels may still read it.
 */
#include "server_reference.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cuda_array.h"
#include "function.h"
#include "server_dispatch.h"
#include "server_module.h"

/* The array of a reference that is bound to one. */
struct binding {
    struct array *array;
    struct list link; /* module->bindings */
    bool is_surface;
    char name[];
};

struct server_references {
    struct module_observer observer;
};

/* The driver's reference: of a texture, or of a surface. */
struct driver_reference {
    CUtexref texture;
    CUsurfref surface;
};

static CUresult look_up(CUlibrary library, const char *name, bool is_surface,
                        struct driver_reference *ret_reference)
{
    CUmodule module;
    CUresult result = driver.cuLibraryGetModule(&module, library);

    if (result != CUDA_SUCCESS)
        return result;
    return is_surface ? driver.cuModuleGetSurfRef(&ret_reference->surface, module, name)
                      : driver.cuModuleGetTexRef(&ret_reference->texture, module, name);
}

static CUresult find_reference(struct session *session, struct module *module, const char *name,
                               bool is_surface, struct driver_reference *ret_reference)
{
    struct exclusive_call call;
    CUresult result;

    if (!driver.cuModuleGetSurfRef || !driver.cuModuleGetTexRef || !driver.cuTexRefSetArray)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (cached_is_shared(module->cached))
        return CUDA_ERROR_NOT_FOUND;
    result = session_enter(session, module->device);
    if (result == CUDA_SUCCESS)
        result = cached_query_begin(module->cached, session, "cuModuleGetTexRef", &call);
    if (result != CUDA_SUCCESS)
        return result;
    result = look_up(module_library(module)->driver, name, is_surface, ret_reference);
    cached_query_end(module->cached, session, result, &call);
    return result;
}

/* Kernels that read references can be in no graph of the driver, and so in no batch. */
CUresult serve_fnReferenceFind(struct session *session, const struct wire_fnReferenceFind *in,
                               struct module *library)
{
    struct driver_reference found;
    CUresult result = find_reference(session, library, in->name, in->surface, &found);

    if (result != CUDA_SUCCESS)
        return result;
    library->has_references = true;
    list_for_each (struct function, function, &library->functions, link)
        function->not_batchable = true;
    return CUDA_SUCCESS;
}

/* ---- the arrays of references ---- */

static struct binding *find_binding(const struct module *module, const char *name, bool is_surface)
{
    list_for_each (struct binding, binding, &module->bindings, link) {
        if (binding->is_surface == is_surface && strcmp(binding->name, name) == 0)
            return binding;
    }
    return NULL;
}

static void binding_destroy(struct session *session, struct binding *binding)
{
    if (!binding)
        return;
    list_remove(&binding->link);
    array_unref(session, binding->array);
    free(binding);
}

static struct binding *binding_create(struct array *array, const char *name, bool is_surface)
{
    struct binding *binding = calloc(1, sizeof(*binding) + strlen(name) + 1);

    if (!binding)
        return NULL;
    binding->array = array;
    binding->is_surface = is_surface;
    strcpy(binding->name, name);
    return binding;
}

/* ---- binding ---- */

static CUresult set_filters(CUtexref reference, const CUDA_TEXTURE_DESC *description)
{
    CUresult result = driver.cuTexRefSetFilterMode(reference, description->filterMode);

    if (result == CUDA_SUCCESS)
        result = driver.cuTexRefSetMipmapFilterMode(reference, description->mipmapFilterMode);
    if (result == CUDA_SUCCESS)
        result = driver.cuTexRefSetMipmapLevelBias(reference, description->mipmapLevelBias);
    if (result == CUDA_SUCCESS)
        result = driver.cuTexRefSetMipmapLevelClamp(reference, description->minMipmapLevelClamp,
                                                    description->maxMipmapLevelClamp);
    if (result == CUDA_SUCCESS)
        result = driver.cuTexRefSetMaxAnisotropy(reference, description->maxAnisotropy);
    return result;
}

static CUresult set_description(CUtexref reference, CUDA_TEXTURE_DESC *description)
{
    CUresult result = driver.cuTexRefSetFlags(reference, description->flags);

    for (int i = 0; i < 3 && result == CUDA_SUCCESS; i++)
        result = driver.cuTexRefSetAddressMode(reference, i, description->addressMode[i]);
    if (result == CUDA_SUCCESS)
        result = driver.cuTexRefSetBorderColor(reference, description->borderColor);
    return result == CUDA_SUCCESS ? set_filters(reference, description) : result;
}

static CUresult set_linear(CUtexref reference, const CUDA_RESOURCE_DESC *resource)
{
    size_t offset;
    CUresult result = driver.cuTexRefSetFormat(reference, resource->res.linear.format,
                                               (int)resource->res.linear.numChannels);

    return result != CUDA_SUCCESS
               ? result
               : driver.cuTexRefSetAddress_v2(&offset, reference, resource->res.linear.devPtr,
                                              resource->res.linear.sizeInBytes);
}

static CUresult set_rows(CUtexref reference, const CUDA_RESOURCE_DESC *resource)
{
    const CUDA_ARRAY_DESCRIPTOR descriptor = {
        .Width = resource->res.pitch2D.width,
        .Height = resource->res.pitch2D.height,
        .Format = resource->res.pitch2D.format,
        .NumChannels = resource->res.pitch2D.numChannels,
    };

    return driver.cuTexRefSetAddress2D_v3(reference, &descriptor, resource->res.pitch2D.devPtr,
                                          resource->res.pitch2D.pitchInBytes);
}

static CUresult set_resource(CUtexref reference, const CUDA_RESOURCE_DESC *resource)
{
    switch (resource->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        return driver.cuTexRefSetArray(reference, resource->res.array.hArray,
                                       CU_TRSA_OVERRIDE_FORMAT);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        return driver.cuTexRefSetMipmappedArray(reference, resource->res.mipmap.hMipmappedArray,
                                                CU_TRSA_OVERRIDE_FORMAT);
    case CU_RESOURCE_TYPE_LINEAR:
        return set_linear(reference, resource);
    default:
        return set_rows(reference, resource);
    }
}

static CUresult bind_texture(CUtexref reference, const CUDA_RESOURCE_DESC *resource,
                             const void *description)
{
    CUDA_TEXTURE_DESC words;
    CUresult result;

    memcpy(&words, description, sizeof(words));
    result = set_resource(reference, resource);
    return result == CUDA_SUCCESS ? set_description(reference, &words) : result;
}

static CUresult check_description(struct session *session, uint32_t size, bool is_surface)
{
    if (size == (is_surface ? 0 : sizeof(CUDA_TEXTURE_DESC)))
        return CUDA_SUCCESS;
    session_log_error(session, "a reference's description has %u bytes, which is not its size",
                      size);
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult bind_array(const struct driver_reference *reference, const struct array *array,
                           bool is_surface, const void *description)
{
    const CUDA_RESOURCE_DESC resource = texture_describe_array(array);

    if (!is_surface)
        return bind_texture(reference->texture, &resource, description);
    if (array->mipmap || !(array->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST))
        return CUDA_ERROR_INVALID_VALUE;
    return driver.cuSurfRefSetArray(reference->surface, array->driver, 0);
}

CUresult serve_fnArrayReference(struct session *session, const struct wire_fnArrayReference *in,
                                struct module *library, struct array *array)
{
    struct driver_reference reference;
    struct binding *binding;
    CUresult result = check_description(session, in->description_size, in->surface);

    if (result == CUDA_SUCCESS && array->device != library->device)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = find_reference(session, library, in->name, in->surface, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    binding = binding_create(array, in->name, in->surface);
    if (!binding)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = bind_array(&reference, array, in->surface, in->description);
    if (result != CUDA_SUCCESS) {
        free(binding);
        return result;
    }
    array->references++;
    binding_destroy(session, find_binding(library, in->name, in->surface));
    list_append(&library->bindings, &binding->link);
    return CUDA_SUCCESS;
}

CUresult serve_fnMemoryReference(struct session *session, const struct wire_fnMemoryReference *in,
                                 struct module *library)
{
    const struct texture_memory memory = {in->address, in->format, in->channels,
                                          in->width,   in->height, in->pitch};
    struct driver_reference reference;
    CUDA_RESOURCE_DESC resource;
    CUresult result = check_description(session, in->description_size, false);

    if (result == CUDA_SUCCESS)
        result = texture_describe_memory(session, "fnMemoryReference", &memory, &resource);
    if (result == CUDA_SUCCESS)
        result = find_reference(session, library, in->name, false, &reference);
    if (result == CUDA_SUCCESS)
        result = bind_texture(reference.texture, &resource, in->description);
    if (result == CUDA_SUCCESS)
        binding_destroy(session, find_binding(library, in->name, false));
    return result;
}

/* ---- the part of the server ---- */

static void forget_module(struct session *session, const struct module *module)
{
    list_for_each_safe (struct binding, binding, &module->bindings, link)
        binding_destroy(session, binding);
}

int server_references_init(struct server *server)
{
    server->references = calloc(1, sizeof(*server->references));
    if (!server->references)
        return -ENOMEM;
    server->references->observer.forget = forget_module;
    server_modules_observe(server, &server->references->observer);
    return 0;
}

void server_references_fini(struct server *server)
{
    free(server->references);
}
