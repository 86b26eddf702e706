/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that rest for long. Some have had neither work nor commands for as many seconds as their
 * limits say (evict_after). The memory of these leaves its devices, as `funnel evict` has it.
 * Others may have the memory then, also those of other servers and those that use the GPU without
 * one. It returns for the program's next command.
 *
 * Critical programs stay. Any other is asked once in each rest. One that cannot leave is asked
 * again after its next work.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct server;
struct session;

/* Of one client: the watchdog's. */
struct rest_eviction {
    atomic_uint_fast64_t since; /* clock_ns(): it rests; 0 = it has worked since the last look; any
                                   thread may read */
    uint32_t taken;             /* bytes of commands at the last look */
    bool was_asked;             /* in this rest */
    atomic_bool is_under_way;   /* and it has not left yet; any thread may read */
};

/* The watchdog's, in each of its rounds. */
void rest_eviction_watch(struct server *server);

/* Any thread: for how long the client has rested, in milliseconds. */
uint64_t rest_eviction_ms(const struct session *session);

/* Any thread: whether the client leaves because it rests. */
bool rest_eviction_is_under_way(const struct session *session);
