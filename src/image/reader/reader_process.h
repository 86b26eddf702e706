/* SPDX-License-Identifier: Apache-2.0 */
/* The other side of image_reader.h. */
#pragma once

#include <stdint.h>

#include "image_reader.h"

/* A request comes with the image's file and the end of a pipe for the answer. */
#define READER_FDS 2u

struct reader_request {
    uint64_t size; /* of the image */
    uint32_t sm;
    uint32_t reserved;
};

/* In a process that has just been forked: begins a process for each request until the socket
 * closes. */
_Noreturn void reader_process_run(int socket, image_look *look, unsigned cpu_seconds);
