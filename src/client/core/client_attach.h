/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching to a server. */
#pragma once

#include "client.h"

enum attach_outcome {
    ATTACHED,
    ATTACH_NO_DAEMON, /* no daemon listens on the socket */
    ATTACH_REFUSED,   /* the daemon or the server refused, or something is broken */
};

/* Makes a client that is attached to a server; waits for the daemon, and for a server that has to
 * start first. Unless it ends with ATTACHED, `why` gets a message that names cause and remedy, and
 * `ret_status` the CUDA error. One thread at a time, before there is a client. */
enum attach_outcome attach(struct client **ret_client, CUresult *ret_status, char *why,
                           size_t why_size);
