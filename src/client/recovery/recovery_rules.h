/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of each command for a client whose server has ended. These functions have no state
 * and take no locks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "channel.h"
#include "clock.h"
#include "cuda_result.h"

enum recovery_rule {
    RECOVERY_BINDS,    /* leaves something with the server that cannot be made again */
    RECOVERY_STAYS,    /* leaves an object, which is found by its handle; cannot be sent again */
    RECOVERY_WORK,     /* if it was not read, it is sent again */
    RECOVERY_ASKS,     /* leaves nothing that outlasts the server: it is sent again in any case */
    RECOVERY_NEEDLESS, /* creates an object that the replay creates anyway, or releases one that
                          stays released */
    RECOVERY_ENDS,     /* ends something that is not made again, and that work may have used */
    RECOVERY_REPEATS,  /* names an object of the last server alone; its caller can make a new one of
                          it */
};

/* The rule of a command, by its number (WIRE_...). Static data, from any thread. */
enum recovery_rule recovery_rule(uint32_t op);

/* Whether a server that ended with this error leaves memory as it was. Then a client that did not
 * cause the error can go on. False when the memory itself has failed. */
bool recovery_is_possible(CUresult error);

/* Whether a client that has sent these commands so far can be moved at all: bit op % 64 of used[op
 * / 64]. */
bool recovery_allows(const uint64_t used[CHANNEL_OPS / 64]);

/* The slots in which answers to messages that were not read are expected: one bit each. */
struct recovery_slots {
    uint32_t sent_again; /* of the messages that are sent again */
    uint32_t repeated;   /* of the calls that their callers make again */
};

/* When calls were asked again that a server had read, as clock_ns(). All zero at first. */
#define RECOVERY_ASKED_MAX 3u
#define RECOVERY_ASKED_NS (60 * NS_PER_SEC)
struct recovery_asked {
    uint64_t at[RECOVERY_ASKED_MAX];
    unsigned next;
};

/* Whether that may be done now, and then it counts: at most RECOVERY_ASKED_MAX times in
 * RECOVERY_ASKED_NS, since the call itself may end the servers. */
bool recovery_may_ask_again(struct recovery_asked *asked, uint64_t now);

/* Goes through the messages that were not read; moves those to be sent again to the front and
 * returns their size in bytes. False when one can be neither left out nor sent again. */
bool recovery_sift(unsigned char *messages, uint32_t size, uint32_t *ret_size,
                   struct recovery_slots *ret_slots);
