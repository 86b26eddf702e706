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

/* Gives each granule with memory of its device a copy in the file. The granules that have got one
 * keep it when a later one fails. The descriptors stay the caller's; `readable` is duplicated. */
CUresult swap_save(struct session *session, int writable, int readable, int *ret_error);

/* Fills the memory of each granule whose copy is in a file. -EBADMSG if the contents are not those
 * that were saved. */
CUresult swap_load(struct session *session, int *ret_error);
