/* SPDX-License-Identifier: Apache-2.0 */
/* Everything a daemon tells about itself, its servers and their clients, as of one moment. */
#pragma once

#include "command_protocol.h"
#include "gpu_uuid.h"
#include "paths.h"

struct snapshot {
    struct command_daemon daemon;
    struct command_server *servers;
    unsigned server_count;
    struct command_client *clients;
    unsigned client_count;
    struct command_limit *limits;
    unsigned limit_count;
    struct command_quota *quotas;
    unsigned quota_count;
};

/* Asks the daemon: 0; -ENOENT when none runs; -errno. What went wrong is said by the caller, in
 * `ret_reason`'s words. */
int snapshot_take(const struct paths *paths, struct snapshot *ret_snapshot, char *ret_reason);

/* The same for a caller that cannot wait long: -ETIMEDOUT. */
int snapshot_take_within(const struct paths *paths, int timeout_ms, struct snapshot *ret_snapshot);

/* snapshot_take() over a connection that stands. */
int snapshot_read(int fd, struct snapshot *ret_snapshot);

void snapshot_fini(struct snapshot *snapshot);

/* The server of a client; never NULL in a snapshot that was taken. */
const struct command_server *snapshot_server_of(const struct snapshot *snapshot,
                                                const struct command_client *client);

/* The same client in another snapshot (NULL: in none); NULL where it is not. */
const struct command_client *snapshot_find_client(const struct snapshot *snapshot,
                                                  const struct command_client *client);

const char *snapshot_state_name(const struct command_server *server);
const char *snapshot_driver_name(uint32_t driver);
uint64_t snapshot_memory_of(const struct command_client *client);
