/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blobs: data that is too long for the ring comes over the socket as a memory file, under a number
 * that a command names. All functions are the session thread's.
 */
#pragma once

#include "session.h"

#define BLOB_SIZE_MAX (512ull << 20)

/* The file of blob `id`, for the caller to close; it has `size` bytes, at most BLOB_SIZE_MAX, and
 * cannot shrink. CUDA_ERROR_INVALID_VALUE, and an error in the log, when it does not arrive within
 * two seconds or is not what the client announced. */
CUresult blob_take(struct session *session, uint32_t id, uint64_t size, int *ret_fd);

/* The descriptor of blob `id` itself, for the caller to close. Nothing about it has been checked.
 * CUDA_ERROR_INVALID_VALUE when it does not arrive. */
CUresult blob_take_fd(struct session *session, uint32_t id, int *ret_fd);

/* Closes those that no command has asked for. */
void blob_drop_all(struct session *session);

/* Creates the blobs of a session, 0 or -ENOMEM, and closes all that are left. */
int session_blobs_init(struct session *session);
void session_blobs_fini(struct session *session);
