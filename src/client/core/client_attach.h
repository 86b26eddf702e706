/* SPDX-License-Identifier: Apache-2.0 */
/* Becoming the client of a server. */
#pragma once

#include "client.h"

enum attach_outcome {
    ATTACHED,
    ATTACH_NOBODY,  /* no daemon listens */
    ATTACH_REFUSED, /* somebody does, and said no, or something is broken */
};

/* `why` gets a sentence when it does not end with ATTACHED. `ret_status` is the CUDA error. */
enum attach_outcome attach(struct client **ret_client, CUresult *ret_status, char *why,
                           size_t why_size);

/* Whether our descriptors are still ours, as far as the socket can tell for all of them. */
bool attach_is_whole(void);

/* For a client whose server has ended: another one, which has the window and the devices of the
 * last and knows nothing else of the client yet. Nobody else is inside the library. */
bool attach_again(char *why, size_t why_size);
