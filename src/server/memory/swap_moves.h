/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the contents of a client's granules between its devices and their copies in the pool. The
 * granules keep their memory; swap.h takes it away and gives it back.
 *
 * Functions are the session thread's. They return what the driver says.
 */
#pragma once

#include "session.h"

/* Makes the copies those of the contents. Of a copy with hashes, only the chunks that have changed
 * are copied, *ret_copied bytes in all. Afterwards the copies have hashes where devices can make
 * them. */
CUresult swap_moves_out(struct session *session, uint64_t *ret_copied);

/* Fills the memory. */
CUresult swap_moves_in(struct session *session);
