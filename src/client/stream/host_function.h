/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the program that run between two commands of a stream. */
#pragma once

#include "client_stream.h"

/* Called once while attaching. */
void host_function_init(void);

/* Has a function called between what is on the stream and what comes after. Returns at once, unless
 * the program has managed variables: then it waits for the stream and the function.
 * CUDA_ERROR_OUT_OF_MEMORY without memory or a thread. */
CUresult host_function_queue(struct stream *stream, CUhostFn function, void *user);

/* Has a function called by the thread of host functions when the fence has passed, or when the
 * context is lost. Called here and now if there is no memory or thread. */
void host_function_when(struct fence fence, CUhostFn function, void *user);
