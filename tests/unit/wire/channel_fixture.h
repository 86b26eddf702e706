/* SPDX-License-Identifier: Apache-2.0 */
/* A server's end, and a client's end in this process or, after fork(), in a child. The socket pair
 * stands for the connection: closing the server's end of it is how a server dies. */
#pragma once

#include <unistd.h>

#include "channel.h"
#include "channel_server.h"
#include "sock.h"
#include "unit.h"

struct channel_fixture {
    struct channel_server *server;
    struct channel client;
    int ends[2]; /* 0 = client, 1 = server */
};

static inline void channel_fixture_init(struct channel_fixture *fixture)
{
    assert_int_equal(sock_pair(fixture->ends), 0);
    assert_int_equal(channel_server_create(&fixture->server), 0);
    assert_int_equal(channel_open(&fixture->client, channel_server_fd(fixture->server), REGION_SIZE,
                                  REGION_RING_BYTES, fixture->ends[0]),
                     0);
    channel_server_close_fd(fixture->server);
}

static inline void channel_fixture_fini(struct channel_fixture *fixture)
{
    channel_close(&fixture->client);
    channel_server_destroy(fixture->server);
    close(fixture->ends[0]);
    if (fixture->ends[1] >= 0)
        close(fixture->ends[1]);
}

static inline void channel_fixture_server_dies(struct channel_fixture *fixture)
{
    close(fixture->ends[1]);
    fixture->ends[1] = -1;
}

/* A command of `size` bytes with one word of payload. False = the server is gone. */
static inline bool channel_fixture_send(struct channel *client, uint32_t kind, uint32_t size,
                                        uint32_t word)
{
    channel_lock(client);
    struct ring_message *message = channel_reserve(client, size);
    if (message) {
        message->kind = kind;
        *(uint32_t *)(message + 1) = word;
        channel_commit(client);
    }
    channel_unlock(client);
    return message != NULL;
}
