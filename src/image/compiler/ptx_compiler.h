/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the PTX of images in separate processes (image_process.h) instead of in the driver. A
 * crash of the compiler fails one load, and no client waits for the compilation of another.
 */
#pragma once

#include "image_process.h"
#include "jit_link.h"

struct ptx_compiler;

/* Starts the compiler with the nvJitLink library at this path: 0; -errno, with the reason. The
 * calling process has one thread; the compiler sees a copy of its memory of now. */
int ptx_compiler_start(const char *path, char *why, size_t why_size,
                       struct ptx_compiler **ret_compiler);

/* No thread uses the compiler any more. NULL is allowed. */
void ptx_compiler_stop(struct ptx_compiler *compiler);

/* Whether a sound image (image_check.h) has only PTX for a device of this architecture, where a
 * driver would look for it. */
bool ptx_compiler_is_needed(const void *bytes, size_t size, unsigned sm);

struct ptx_compiled {
    char *message; /* to be freed; the others are in it */
    const void *code;
    size_t code_size;
    const char *log; /* the compiler's messages, not NULL */
};

/* Any thread. Returns 0 or -ENOMEM. -EINVAL, -EPROTONOSUPPORT: see jit_link.h, with a log.
 * -EBADMSG: the compiler crashed, exceeded its time or sent an invalid answer. -EPIPE: its process
 * is gone. In each case the caller frees the result with ptx_compiled_fini(). */
int ptx_compiler_compile(const struct ptx_compiler *compiler, const struct image_source *source,
                         const struct jit_link_options *options, struct ptx_compiled *ret_compiled);
void ptx_compiled_fini(struct ptx_compiled *compiled);
