/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the PTX of images in processes of their own (image_process.h), rather than in the
 * driver: an error in the compiler costs the one load, and no client waits for another's
 * compilation.
 */
#pragma once

#include "image_process.h"
#include "jit_link.h"

struct ptx_compiler;

/* Starts it with the nvJitLink library at this path: 0; -errno, and why. The process has one
 * thread, and what it holds in memory now is what the compiler can see. */
int ptx_compiler_start(const char *path, char *why, size_t why_size,
                       struct ptx_compiler **ret_compiler);

/* No thread asks any more. NULL is allowed. */
void ptx_compiler_stop(struct ptx_compiler *compiler);

/* Whether an image, which is sound (image_check.h), has nothing but PTX for a device of this
 * architecture, in the one place where a driver would look. */
bool ptx_compiler_is_needed(const void *bytes, size_t size, unsigned sm);

struct ptx_compiled {
    char *message; /* to be freed; the others are in it */
    const void *code;
    size_t code_size;
    const char *log; /* what the compiler says, not NULL */
};

/* Any thread. 0; -EINVAL, -EPROTONOSUPPORT: see jit_link.h, with a log; -EBADMSG when the compiler
 * has crashed, used up its time or answered nonsense; -EPIPE when its process is gone; -ENOMEM.
 * With each of them the caller ends the result with ptx_compiled_fini(). */
int ptx_compiler_compile(const struct ptx_compiler *compiler, const struct image_source *source,
                         const struct jit_link_options *options, struct ptx_compiled *ret_compiled);
void ptx_compiled_fini(struct ptx_compiled *compiled);
