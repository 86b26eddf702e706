/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface references: the 8 bytes of a reference's variable are the number of the
 * object that kernels read.
 */
#include <string.h>

#include "reference.h"
#include "soft_context.h"
#include "soft_module.h"
#include "soft_texture.h"

static CUresult enter(void)
{
    struct context *context;
    SOFT_LOCKED;

    return context_use_locked(&context);
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
    SOFT_LOCKED;

    return describe(array_get_locked(handle), ret_descriptor);
}

static CUresult describe_mipmap(CUmipmappedArray handle, CUDA_ARRAY3D_DESCRIPTOR *ret_descriptor)
{
    SOFT_LOCKED;

    return describe(array_get_mipmap_locked(handle), ret_descriptor);
}

static enum sg_reference kind_of(bool is_surface)
{
    return is_surface ? SG_SURFACE_REFERENCE : SG_TEXTURE_REFERENCE;
}

/* The index of its variable, or -1. */
static int find_variable(const struct module *module, const char *name, bool is_surface)
{
    int index = sg_module_find_variable(module->library->code, name);

    return index >= 0 && sg_module_variable(module->library->code, (unsigned)index)->reference ==
                             kind_of(is_surface)
               ? index
               : -1;
}

/* ---- binding ---- */

static void show_object(const struct reference *reference, uint64_t number)
{
    const struct module *module = reference->module;
    int index = find_variable(module, reference->name, reference->is_surface);

    memcpy((void *)(uintptr_t)sg_instance_address(module->instance, (unsigned)index), &number,
           sizeof(number));
}

static CUresult create_object_locked(const struct reference *reference,
                                     const struct reference_state *state,
                                     struct texture **ret_texture)
{
    const struct module *module = reference->module;

    return reference->is_surface
               ? surface_create_locked(module->context, &state->resource, ret_texture)
               : texture_create_locked(module->context, &state->resource, &state->description, NULL,
                                       ret_texture);
}

/* Kernels that run look the number up when they read, so the context's work is done first. */
static CUresult bind(struct reference *reference, const struct reference_state *state)
{
    const struct module *module = reference->module;
    struct texture *texture;
    SOFT_LOCKED;
    CUresult result = context_synchronize_locked(module->context);

    if (!result)
        result = create_object_locked(reference, state, &texture);
    if (result)
        return result;
    show_object(reference, texture->number);
    if (reference->binding)
        texture_free_locked(reference->binding);
    reference->binding = texture;
    return CUDA_SUCCESS;
}

const struct reference_backend reference_backend = {
    .enter = enter,
    .describe_array = describe_array,
    .describe_mipmap = describe_mipmap,
    .bind = bind,
};

void module_drop_references_locked(struct module *module)
{
    list_for_each (struct reference, reference, &module->references, link) {
        if (reference->binding)
            texture_free_locked(reference->binding);
    }
    references_free(&module->references);
}

/* ---- references of modules ---- */

static CUresult get_reference(CUmodule handle, const char *name, bool is_surface,
                              uint64_t *ret_handle)
{
    struct reference *reference;
    SOFT_LOCKED;
    struct module *module = soft_get(SOFT_MODULE, handle);

    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    if (find_variable(module, name, is_surface) < 0)
        return CUDA_ERROR_NOT_FOUND;
    reference = references_find(&module->references, name, is_surface);
    if (!reference)
        reference = references_add(&module->references, module, name, is_surface);
    if (!reference)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_handle = reference->handle;
    return CUDA_SUCCESS;
}

CUresult soft_cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name)
{
    uint64_t handle;
    CUresult result = get_reference(hmod, name, false, &handle);

    if (!result)
        *pTexRef = (CUtexref)(uintptr_t)handle;
    return result;
}

CUresult soft_cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name)
{
    uint64_t handle;
    CUresult result = get_reference(hmod, name, true, &handle);

    if (!result)
        *pSurfRef = (CUsurfref)(uintptr_t)handle;
    return result;
}
