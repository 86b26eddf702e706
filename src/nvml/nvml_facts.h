/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon knows of a device's clients, as of the last second. A user sees the clients that
 * `funnel ps` shows. A daemon that does not answer costs a call at most FACTS_TIMEOUT_MS, and
 * nothing in the ten seconds after that.
 */
#pragma once

#include <stdbool.h>

#include "nvml_abi.h"
#include "snapshot.h"

#define FACTS_TIMEOUT_MS 2000

struct facts {
    struct snapshot now, before;
    uint64_t now_ns, before_ns; /* of clock_ns(); 0 = there is no such snapshot */
    int64_t now_us;             /* of `now`, since the epoch */
};

/* The facts, which are the caller's until facts_end(); NULL, and no facts_end(), when there are
 * none. `before` is there if `needs_rates`, and may be otherwise. */
const struct facts *facts_begin(bool needs_rates);
void facts_end(const struct facts *facts);

/* Called around fork(), by the thread that forks. */
void facts_before_fork(void);
void facts_after_fork(void);

/* A client's part in one device. */
struct device_client {
    const struct command_client *client;
    unsigned pid; /* as this process sees it; 0: in a PID namespace that it does not see */
    unsigned ordinal;
    unsigned sm_count;
};

/* The next client of the device after *cursor, which is 0 at first; false behind the last. */
bool facts_next_client(const struct facts *facts, const uint8_t uuid[16], unsigned *cursor,
                       struct device_client *ret_client);

/* The ordinal that a server gives to the device; false where it does not serve it. */
bool facts_find_device(const struct command_server *server, const uint8_t uuid[16],
                       unsigned *ret_ordinal);

/* Whether a process, as this one sees it, is a server. */
bool facts_is_server(const struct facts *facts, unsigned pid);

/* Whether a server serves the device. */
bool facts_serve(const struct facts *facts, const uint8_t uuid[16]);

/* Percent of the device's multiprocessors that the client has used since the snapshot before. */
unsigned facts_sm_percent(const struct facts *facts, const struct device_client *client);

/* Percent of the client's life in which it had kernels. */
unsigned facts_gpu_percent_of_life(const struct facts *facts, const struct device_client *client);

/* Percent of the time since the snapshot before in which the device had kernels of any client. */
unsigned facts_busy_percent(const struct facts *facts, const uint8_t uuid[16]);
