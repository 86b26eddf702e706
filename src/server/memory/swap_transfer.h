/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the contents of a client's granules between its devices and a file (swap_file.h). The
 * granules keep their memory; swap.h takes it away and gives it back.
 *
 * Functions are the session thread's. They return CUDA_ERROR_OPERATING_SYSTEM with *ret_error, a
 * negative error number, for what the file caused; or what the driver says.
 */
#pragma once

#include "session.h"

struct swap_saving {
    int writable; /* of the file: the caller's, as the next one */
    int readable;
    bool returns; /* SWAP_RETURNS */
};

/* Writes the contents of each granule with memory of its device. Each granule also gets its copy,
 * with a duplicate of the descriptor to read. Granules that have got one keep it when that fails
 * for a later one. */
CUresult swap_save(struct session *session, const struct swap_saving *saving, int *ret_error);

/* Writes the same contents, and the granules get no copies. Where the devices have enough free
 * memory for a snapshot, the client may go on at once, and the writing runs until its end.
 * Otherwise all is written when it returns. The descriptor stays the caller's. */
CUresult swap_writing_begin(struct session *session, int fd, int *ret_error);

/* Whether the file is still being written; the second waits for that. Nothing where none is. */
bool swap_writing_runs(const struct session *session);
CUresult swap_writing_end(struct session *session, int *ret_error);

/* As memory_reclaimer: a client that needs the memory of its snapshot waits for the end, too, and
 * for those of other clients. */
bool swap_writing_reclaim(struct session *session, const struct device *device);

/* The file is of no use then. Waits for a chunk at most. */
void swap_writing_cancel(struct session *session);

/* Fills the memory of each granule whose copy is in a file. -EBADMSG if the contents are not those
 * that were saved. */
CUresult swap_load(struct session *session, int *ret_error);
