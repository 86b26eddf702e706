/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables that the client library reads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach.h"
#include "hello.h"

/* Path of the daemon's socket, by the rules of CUDA_MPS_PIPE_DIRECTORY: false when it is too long.
 */
bool environment_socket_path(char *path, size_t capacity);

/* Where root's daemon listens, which serves all users: the second choice of a process without
 * CUDA_MPS_PIPE_DIRECTORY. False when there is no second choice. */
bool environment_system_socket_path(char *path, size_t capacity);

/* The limits that the process asks for itself (CUDA_MPS_...). */
void environment_limits(struct hello *hello);

/* The group it belongs to, and the static partition it is for. */
void environment_names(struct hello *hello);

/* Which of the server's devices the process sees, in its own order, by CUDA_VISIBLE_DEVICES. The
 * list ends where CUDA's does: at the first entry that names no device. Returns how many. */
int environment_visible_devices(const char *list, const struct device_record *records, int count,
                                uint32_t *ret_indices);

/* FUNNEL_REQUIRE: no falling back to the real driver. */
bool environment_requires_server(void);
