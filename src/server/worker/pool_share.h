/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many sessions each worker of the pool shall have. A worker serves its sessions in turn. So a
 * session gets its turn less often with a worker that has more of them, or that is slower because
 * it shares its CPU. All sessions are to get their turns equally often.
 */
#pragma once

#include <stdint.h>

/* What a worker has done while it had commands to make, in the recent past. */
struct pool_turns {
    uint64_t busy_ns, turns; /* one turn: some commands of one session */
};

/* Adds what came since the last count. The past counts less with each. */
void pool_turns_add(struct pool_turns *turns, struct pool_turns more);

/* Divides `sessions` among so many `workers`, at least 1, so that the one with the fewest turns
 * gets the most. A worker that was hardly busy counts as an average one. */
void pool_share(const struct pool_turns *turns, unsigned workers, unsigned sessions,
                unsigned *ret_shares);
