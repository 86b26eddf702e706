/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the program that run between two commands of a stream. */
#pragma once

#include "client_stream.h"

/* Called once while attaching. */
void host_function_init(void);

/* Has a function called between what is on the stream and what comes. */
CUresult host_function_queue(struct stream *stream, CUhostFn function, void *user);

/* Has a function called by the thread of host functions when the fence has passed, whatever becomes
 * of the context; here and now if there can be no thread. */
void host_function_when(struct fence fence, CUhostFn function, void *user);
