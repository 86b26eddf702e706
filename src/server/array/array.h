/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of a client, and the objects by which its kernels read them.
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

/* An array lives as long as any object on it: kernels that read one must not find it gone. */
void array_unref(struct session *session, struct array *array);

/* The driver's part of it. */
void array_destroy_driver(const struct array *array);

/* ---- array_spare.c: the context of the device is current ---- */

/* True when there was one like it: then it has its driver's part, with whatever is in it. */
bool array_spare_take(struct array *array);

/* Keeps the driver's part of an array, which is none of anybody's any more, or ends it. */
void array_spare_keep(const struct array *array);

/* ---- array_clear.c ---- */

/* Writes zeroes over what is not a whole array with mipmaps. The driver reuses memory inside a
 * process as it is, and the process is the same for all clients. */
CUresult array_clear(const struct array *array);

/* ---- texture.c ---- */

/* Ends an object that is not in the handle table any more. */
void texture_destroy(struct session *session, struct texture *texture);

/* ---- the parts of devices and of a session: array_state.c ---- */

/* The server's devices are there. 0 or -ENOMEM. */
int server_arrays_init(struct server *server);
void server_arrays_fini(struct server *server);
int session_arrays_init(struct session *session);
void session_arrays_fini(struct session *session);
