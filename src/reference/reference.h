/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface references: global names in a module, which the host binds to an array or to
 * memory. Their owner, a driver library, defines `reference_backend`. Generated code forwards the
 * owner's cuTexRefX to reference_cuTexRefX (reference_prototypes.h).
 *
 * As in CUDA, one thread at a time may use a reference.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "list.h"
#include "reference_prototypes.h"

/* What a program has set. */
struct reference_state {
    CUarray_format format; /* of an element of memory */
    unsigned channels;
    CUDA_TEXTURE_DESC description; /* not of a surface */
    bool is_bound;
    CUDA_RESOURCE_DESC resource; /* if it is bound */
};

struct reference {
    uint64_t handle;
    void *module; /* the owner's; NULL: made by cuTexRefCreate() */
    char *name;
    bool is_surface;
    struct reference_state state;
    void *binding; /* the owner's, NULL at first */
    struct list link;
};

struct reference_backend {
    /* The error of the current context. */
    CUresult (*enter)(void);
    CUresult (*describe_array)(CUarray array, CUDA_ARRAY3D_DESCRIPTOR *ret_descriptor);
    CUresult (*describe_mipmap)(CUmipmappedArray array, CUDA_ARRAY3D_DESCRIPTOR *ret_descriptor);
    /* Binds a reference of a module as a state says: launches from now on see that. */
    CUresult (*bind)(struct reference *reference, const struct reference_state *state);
};

extern const struct reference_backend reference_backend;

/* The reference of that name in a module's list, or NULL. */
struct reference *references_find(const struct list *references, const char *name, bool is_surface);

/* Adds one that is not there yet: NULL when out of memory. */
struct reference *references_add(struct list *references, void *module, const char *name,
                                 bool is_surface);

/* Frees all of a list, whose module ends. The owner has freed the bindings. */
void references_free(struct list *references);

/* ---- for the calls ---- */

/* NULL when there is none. */
struct reference *reference_lookup(const void *handle, bool is_surface);

/* The reference of a handle, and a copy of its state to change. CUDA_ERROR_INVALID_HANDLE when
 * there is none, or the error of the current context. */
CUresult reference_begin(const void *handle, bool is_surface, struct reference **ret_reference,
                         struct reference_state *ret_state);
/* Takes over the changed state, and binds what is bound anew. After an error nothing has changed.
 */
CUresult reference_end(struct reference *reference, const struct reference_state *state);

struct reference *reference_create(void *module, const char *name, bool is_surface);
void reference_destroy(struct reference *reference);
