/* SPDX-License-Identifier: Apache-2.0 */
/* References as objects. */
#include "reference.h"

#include <stdlib.h>
#include <string.h>

#include "handles.h"

enum { REFERENCE_TEXTURE = 0x78, REFERENCE_SURFACE }; /* apart from the types of graph_objects.h */

static struct handles references;

static unsigned handle_type_of(bool is_surface)
{
    return is_surface ? REFERENCE_SURFACE : REFERENCE_TEXTURE;
}

static uint64_t add_handle(struct reference *reference)
{
    if (!references.chunks && handles_init(&references, HANDLE_INDEX_MAX))
        return 0;
    return handles_add(&references, handle_type_of(reference->is_surface), reference);
}

struct reference *reference_lookup(const void *handle, bool is_surface)
{
    return references.chunks
               ? handles_get(&references, handle_type_of(is_surface), (uintptr_t)handle)
               : NULL;
}

static const struct reference_state initial = {
    .format = CU_AD_FORMAT_FLOAT,
    .channels = 1,
    .description.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                                CU_TR_ADDRESS_MODE_CLAMP},
};

struct reference *reference_create(void *module, const char *name, bool is_surface)
{
    struct reference *reference = calloc(1, sizeof(*reference));

    if (!reference)
        return NULL;
    list_init(&reference->link);
    reference->module = module;
    reference->is_surface = is_surface;
    reference->state = initial;
    reference->name = strdup(name);
    reference->handle = reference->name ? add_handle(reference) : 0;
    if (reference->handle)
        return reference;
    free(reference->name);
    free(reference);
    return NULL;
}

void reference_destroy(struct reference *reference)
{
    handles_remove(&references, handle_type_of(reference->is_surface), reference->handle);
    list_remove(&reference->link);
    free(reference->name);
    free(reference);
}

/* ---- of a module ---- */

struct reference *references_find(const struct list *list, const char *name, bool is_surface)
{
    list_for_each (struct reference, reference, list, link) {
        if (reference->is_surface == is_surface && strcmp(reference->name, name) == 0)
            return reference;
    }
    return NULL;
}

struct reference *references_add(struct list *list, void *module, const char *name, bool is_surface)
{
    struct reference *reference = reference_create(module, name, is_surface);

    if (reference)
        list_append(list, &reference->link);
    return reference;
}

void references_free(struct list *list)
{
    list_for_each_safe (struct reference, reference, list, link)
        reference_destroy(reference);
}

/* ---- changes ---- */

CUresult reference_begin(const void *handle, bool is_surface, struct reference **ret_reference,
                         struct reference_state *ret_state)
{
    CUresult result = reference_backend.enter();
    struct reference *reference = result ? NULL : reference_lookup(handle, is_surface);

    if (result)
        return result;
    if (!reference)
        return CUDA_ERROR_INVALID_HANDLE;
    *ret_reference = reference;
    *ret_state = reference->state;
    return CUDA_SUCCESS;
}

CUresult reference_end(struct reference *reference, const struct reference_state *state)
{
    CUresult result = CUDA_SUCCESS;

    if (state->is_bound && reference->module)
        result = reference_backend.bind(reference, state);
    if (!result)
        reference->state = *state;
    return result;
}
