/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are others copying to the device as well? A copy by itself is cut into small pieces, so that the
 * thread and the GPU work side by side. Where other clients' pieces fill the gaps, that brings
 * nothing, and every piece costs some microseconds to start. A client sees no other, but it sees
 * how long the end of its copies takes. FUNNEL_NO_COPY_PACE=1 in the environment: small pieces
 * always.
 */
#ifndef FUNNEL_COPY_PACE_H
#define FUNNEL_COPY_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* The last piece of a copy had so many bytes, and was waited for so long. From any thread. */
void copy_pace_note(uint64_t piece_bytes, uint64_t waited_ns);

/* Were most of the last copies slower than the way to the GPU alone would make them? */
bool copy_pace_is_crowded(void);

#endif
