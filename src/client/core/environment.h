/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables that the client library reads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach.h"
#include "hello.h"

/* The path of the daemon's socket in directory number `index` of CUDA_MPS_PIPE_DIRECTORY, which has
 * colons between them, or in the default directory. Returns 1, or 0 when there is no such
 * directory, or -ENAMETOOLONG. */
int environment_socket_path(unsigned index, char *path, size_t capacity);

/* Where root's daemon listens, which serves all users: the second choice of a process without
 * CUDA_MPS_PIPE_DIRECTORY. False when there is no second choice. */
bool environment_system_socket_path(char *path, size_t capacity);

/* Fills in the limits that the process asks for (CUDA_MPS_..., and the variables of HAMi and KAI).
 * Invalid values are left out. */
void environment_limits(struct hello *hello);

/* Fills in the group of the process, and the static partition that it asks for. */
void environment_names(struct hello *hello);

/* Which of the server's `count` devices the process sees, in its own order: `list` is the value of
 * CUDA_VISIBLE_DEVICES, or NULL for all. Where NVIDIA_VISIBLE_DEVICES names GPUs by UUID, only
 * those count, as in the container that a scheduler made with it. As in CUDA the list ends at the
 * first entry that names no device, and is empty if it names one twice. Returns how many;
 * `ret_indices` has space for `count`. */
int environment_visible_devices(const char *list, const struct device_record *records, int count,
                                uint32_t *ret_indices);

/* FUNNEL_MANAGED: where managed memory is. */
enum managed_place {
    MANAGED_MOVES,  /* where it is used, if system calls of the program can be served as well */
    MANAGED_DEVICE, /* where it is used, even if system calls on it may fail */
    MANAGED_HOST,
};

/* MANAGED_MOVES where the variable has no such value. */
enum managed_place environment_managed_place(void);

/* FUNNEL_REQUIRE: whether calls must not go to the real driver when no daemon listens. */
bool environment_requires_server(void);
