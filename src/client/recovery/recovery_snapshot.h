/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state in which the last server has left this client, and whether it can be moved with that.
 * No other thread is inside the library.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_result.h"
#include "move_obstacle.h"
#include "recovery_rules.h"

struct recovery_snapshot {
    uint64_t read; /* channel.sent up to which it may have read */
    unsigned char *messages;
    uint32_t size;
    struct recovery_slots slots;
    CUresult error, deferred;
    enum move_obstacle obstacle;
    bool is_planned; /* the last server has done all work that it has read, reads no more, and gives
                      * the client what its variables hold */
    bool is_settled; /* LEAVE_SETTLED: the server had nothing in flight */
};

/* Whether work was lost, so that nothing else has to be found out: a server that runs on for a
 * while can only read more. */
bool recovery_snapshot_lost_work(struct recovery_snapshot *snapshot);

/* Copies what was not read, and takes errors and output out of the channel. False without memory.
 */
bool recovery_snapshot_take(struct recovery_snapshot *snapshot);

/* Finds the obstacle, if there is one. `asked` tells when calls were sent again before. */
void recovery_snapshot_check(struct recovery_snapshot *snapshot, struct recovery_asked *asked);

/* What would keep a client from moving that has a server: no snapshot has to be taken for it. */
enum move_obstacle recovery_find_obstacle(void);
