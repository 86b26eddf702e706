/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: what belongs together, fails together and is thrown away together.
 */
#pragma once

#include "exec.h"
#include "soft.h"
#include "soft_device.h"

struct green;

struct context {
    uint64_t handle;
    unsigned long long id;
    struct device *device;
    bool is_primary;
    bool active;           /* a primary context without users is not */
    unsigned retains;      /* of a primary context */
    unsigned attached;     /* by cuCtxAttach */
    unsigned device_syncs; /* calls that wait for all of its streams now: device_sync.h */
    unsigned blocks_used;  /* that its streams and graphs take, of so many in its further blocks */
    unsigned blocks_capacity;
    unsigned flags;
    unsigned api_version;
    CUresult error; /* sticky: the fault that ended it */
    struct sg_space *space;
    struct printer *printer;
    struct stream *legacy;
    struct list streams;
    struct list events;
    struct list memory;
    struct list modules;
    struct list arrays;
    struct list textures;
    struct list in_all; /* the active ones */
    unsigned long long next_grid;
    size_t limits[CU_LIMIT_MAX];
    uint32_t limits_used; /* bit l: a kernel has been launched that limit l is about */
    CUfunc_cache cache;
    CUsharedconfig shared_config;
    struct context *peers[SOFT_MAX_DEVICES]; /* whose memory its kernels may access; NULL: none */
};

struct context *context_create_primary_locked(struct device *device);
CUresult context_create_locked(struct device *device, unsigned flags, struct context **ret_context);
CUresult context_activate_locked(struct context *context);
/* Waits for the context's work, then frees everything in it. Releases soft_lock meanwhile. */
void context_deactivate_locked(struct context *context);
/* A kernel is about to be launched. */
void context_note_use_locked(struct context *context, const struct sg_kernel_info *kernel);
/* CUDA_ERROR_OUT_OF_MEMORY when the device has too little memory for a larger buffer or heap;
 * CUDA_ERROR_INVALID_VALUE when a kernel that uses it was launched. */
CUresult context_set_limit_locked(struct context *context, CUlimit limit, size_t value);
/* Of one that is not active. */
void context_free(struct context *context);

struct context *context_get(CUcontext handle);
/* A number that no other context has. */
unsigned long long context_new_id_locked(void);
/* The thread's current context: 201 without one, 709 when it was destroyed. */
CUresult context_current_locked(struct context **ret_context);
/* The same, and its sticky error if it has one: for calls that do work. */
CUresult context_use_locked(struct context **ret_context);
/* handle NULL means the current one. */
CUresult context_find_locked(CUcontext handle, struct context **ret_context);

/* Ends the context: everything in it finishes without running, every later call answers `error`. */
void context_fail_locked(struct context *context, CUresult error, const char *message);
/* Waits for all of its streams as they stand now; then its sticky error. */
CUresult context_synchronize_locked(struct context *context);
/* As context_synchronize_locked(), for the streams of a green context, or of none where it is NULL,
 * that have none of these flags. */
CUresult context_join_locked(struct context *context, const struct green *green,
                             unsigned flags_left_out);

/* Adds or removes a range that kernels of this context may access; host memory belongs to every
 * context. */
void contexts_publish_locked(struct context *owner, uint64_t address, uint64_t size,
                             unsigned access);
void contexts_retract_locked(struct context *owner, uint64_t address);

/* Frees the malloc() memory of this owner's kernels; none of them runs. */
void contexts_forget_owner_locked(uint64_t owner);

/* The slot of this peer in the context; for NULL, a free slot. NULL: there is none. */
struct context **context_peer(struct context *context, const struct context *peer);
/* Whether kernels of a context may access memory of the peer. */
bool context_reaches(struct context *context, const struct context *peer);
void context_forget_peer_locked(struct context *context, const struct context *peer);
