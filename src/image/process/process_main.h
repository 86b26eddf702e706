/* SPDX-License-Identifier: Apache-2.0 */
/* The other side of image_process.h. */
#pragma once

#include "image_process.h"

/* A request comes with the image's file and the end of a pipe for the answer. */
#define PROCESS_FDS 2u

struct process_request {
    uint64_t size; /* of the image */
    struct image_task task;
};

/* The first message of a process with a `prepare` function: whether that succeeded. */
struct process_greeting {
    char why[IMAGE_PROCESS_WHY]; /* "" = it could */
};

/* Runs in the new process: forks a process for each request until the socket closes. */
_Noreturn void process_main(int socket, const struct image_process_kind *kind);
