/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of a client, and the objects by which its kernels access them. Functions are the session
 * thread's.
 */
#pragma once

#include "server.h"
#include "session.h"

/* An array, an array with mipmaps, or a level of one. */
struct array {
    CUarray driver;          /* NULL with mipmaps */
    CUmipmappedArray mipmap; /* NULL without */
    unsigned levels;         /* of mipmap */
    struct array *whole;     /* of a level */
    const struct device *device;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    uint64_t charged;
    unsigned references; /* the handle's, and those of objects and levels */
};

struct texture;

/* Drops a reference. An array lives as long as any object on it, because kernels may access it
 * through the object. */
void array_unref(struct session *session, struct array *array);

/* Destroys the driver's array at an idle point (exclusive.h), because the driver's call may wait
 * for all work. The device's context is current. */
void array_destroy_driver(struct session *session, const struct array *array);

/* ---- texture.c ---- */

/* Memory of a texture: `height` rows of `width` elements, or, where height is 0, `width` bytes. */
struct texture_memory {
    uint64_t address;
    uint32_t format, channels;
    uint64_t width, height, pitch;
};

/* What the driver is told of an array, or of memory. The second is CUDA_ERROR_INVALID_VALUE, and
 * logged for `call`, unless all of the memory is the client's. */
CUDA_RESOURCE_DESC texture_describe_array(const struct array *array);
CUresult texture_describe_memory(struct session *session, const char *call,
                                 const struct texture_memory *memory,
                                 CUDA_RESOURCE_DESC *ret_resource);

/* Ends an object that is not in the handle table any more. */
void texture_end(struct session *session, struct texture *texture);

/* ---- the parts of devices and of a session: array_state.c ---- */

/* The server's devices are initialized. 0 or -ENOMEM. */
int server_arrays_init(struct server *server);
void server_arrays_fini(struct server *server);
int session_arrays_init(struct session *session);
void session_arrays_fini(struct session *session);
