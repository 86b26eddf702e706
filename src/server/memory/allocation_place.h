/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where memory of cuMemCreate is mapped: by its client, and by the server while the contents move.
 *
 * Functions are the session thread's, in the context of the memory's device.
 */
#pragma once

#include "allocation.h"

/* Gives memory.address a place where the device may read and write all of it: one of the client's,
 * or one for the server alone. The second function ends that. */
CUresult allocation_open(struct session *session, struct allocation *allocation);
void allocation_close(struct session *session, struct allocation *allocation);

/* The same for swap_for_each(): other granules have such a place at all times. */
CUresult granule_open(struct session *session, struct granule *granule, void *context);
CUresult granule_close(struct session *session, struct granule *granule, void *context);

/* Maps the memory wherever the client has it, and opens it; or nothing of that. The second function
 * takes all of it back, and the places stay the client's. */
CUresult allocation_map_all(struct session *session, struct allocation *allocation);
void allocation_unmap_all(struct session *session, struct allocation *allocation);

/* Maps one place of memory that is there, without any access. */
CUresult mapping_make(const struct mapping *mapping);

/* Gives the devices of `mapping` the access that it names. */
CUresult mapping_grant(const struct session *session, const struct mapping *mapping);
