/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blobs: what is too long for the ring comes as a memory file over the socket, under a number that
 * a command names.
 */
#pragma once

#include "session.h"

#define BLOB_SIZE_MAX (512ull << 20)

/* The file of blob `id`, for the caller to close. It has `size` bytes and can not shrink:
 * CUDA_SUCCESS; CUDA_ERROR_INVALID_VALUE and a sentence when it did not come as it should. */
CUresult blob_take(struct session *session, uint32_t id, uint64_t size, int *ret_fd);

/* The descriptor of blob `id` itself, for the caller to close. Nothing of it has been checked. */
CUresult blob_take_fd(struct session *session, uint32_t id, int *ret_fd);

/* Closes those that no command has asked for. */
void blob_drop_all(struct session *session);

/* The blobs of a session. The second closes what is left. */
int session_blobs_init(struct session *session);
void session_blobs_fini(struct session *session);
