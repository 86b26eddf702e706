/* SPDX-License-Identifier: Apache-2.0 */
/* See channel_server.h. */
#include "channel_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fd.h"
#include "futex.h"
#include "shm.h"

static int map_both(struct channel_server *server)
{
    void *region;
    int rc = shm_map(server->region_fd, sizeof(struct region), NULL, 0, &region);
    if (rc < 0)
        return rc;
    server->region = region;
    return ring_map(server->region_fd, sizeof(struct region), REGION_RING_BYTES,
                    &server->ring_data);
}

static void format_region(struct channel_server *server)
{
    struct region *region = server->region;
    region->magic = REGION_MAGIC;
    region->ring_bytes = REGION_RING_BYTES;
    ring_format(&region->ring);
    ring_init(&server->ring, &region->ring, server->ring_data, REGION_RING_BYTES, false);
}

int channel_server_create(struct channel_server **ret_server)
{
    struct channel_server *server = calloc(1, sizeof(*server));
    if (!server)
        return -ENOMEM;
    server->region_fd = -1;
    int rc = shm_create("funnel-control", REGION_SIZE, &server->region_fd);
    if (rc == 0)
        rc = map_both(server);
    if (rc < 0) {
        channel_server_destroy(server);
        return rc;
    }
    format_region(server);
    *ret_server = server;
    return 0;
}

void channel_server_destroy(struct channel_server *server)
{
    if (!server)
        return;
    ring_unmap(server->ring_data, REGION_RING_BYTES);
    shm_unmap(server->region, sizeof(struct region));
    fd_close(&server->region_fd);
    free(server);
}

int channel_server_fd(const struct channel_server *server)
{
    return server->region_fd;
}

void channel_server_close_fd(struct channel_server *server)
{
    fd_close(&server->region_fd);
}

int channel_server_next(struct channel_server *server, const struct ring_message **ret_message)
{
    int size = ring_next(&server->ring, server->message, sizeof(server->message));
    if (size <= 0)
        return size;
    ring_release(&server->ring);
    *ret_message = (const struct ring_message *)server->message;
    /* Partner: channel_server_last_op(). */
    atomic_store_explicit(&server->last_kind, (*ret_message)->kind, memory_order_relaxed);
    return size;
}

void channel_server_make_exact(struct channel_server *server)
{
    ring_make_exact(&server->ring);
}

void channel_server_wait(struct channel_server *server, uint64_t timeout_ns)
{
    ring_wait_message(&server->ring, timeout_ns);
}

bool channel_server_has_command(const struct channel_server *server)
{
    return ring_has_message(&server->ring);
}

void channel_server_prefetch(const struct channel_server *server)
{
    ring_prefetch(&server->ring);
}

void channel_server_kick(struct channel_server *server)
{
    ring_kick(&server->ring);
}

/* The thread that reads the ring writes both. Partner: channel_server_next(). */
uint32_t channel_server_last_op(const struct channel_server *server, uint32_t *ret_position)
{
    *ret_position = ring_cursor(&server->ring);
    return channel_kind_op(atomic_load_explicit(&server->last_kind, memory_order_relaxed));
}

uint32_t channel_server_queued(const struct channel_server *server, uint32_t *ret_taken)
{
    uint32_t taken = ring_cursor(&server->ring);
    /* Partner: ring_store_tail(). The client's word may be anything. */
    uint32_t sent = atomic_load_explicit(&server->region->ring.tail, memory_order_relaxed);

    *ret_taken = taken;
    return sent - taken <= REGION_RING_BYTES ? sent - taken : 0;
}

int channel_server_reply(struct channel_server *server, int slot, CUresult status, const void *data,
                         uint32_t size)
{
    if (slot < 0 || slot >= (int)REPLY_SLOTS)
        return -EPROTO;
    if (size > REPLY_DATA_MAX)
        return -EMSGSIZE;
    struct reply_slot *reply = &server->region->slots[slot];
    reply->status = (int32_t)status;
    reply->size = size;
    if (size > 0)
        memcpy(reply->data, data, size);
    /* Release: the answer is complete. Partners answered() and sleep_for_answer() in channel.c. */
    if (atomic_exchange_explicit(&reply->state, REPLY_DONE, memory_order_release) == REPLY_SLEEPING)
        futex_wake(&reply->state, 1);
    return 0;
}

/* Puts `status` into a word that has none. */
static void set_once(_Atomic uint32_t *word, CUresult status)
{
    uint32_t none = 0;
    atomic_compare_exchange_strong_explicit(word, &none, (uint32_t)status, memory_order_release,
                                            memory_order_relaxed);
}

void channel_server_fail(struct channel_server *server, CUresult status)
{
    set_once(&server->region->sticky_error, status);
    for (uint32_t i = 0; i < REPLY_SLOTS; i++)
        futex_wake(&server->region->slots[i].state, 1);
    futex_wake(&server->region->ring.head, 1);
}

void channel_server_defer(struct channel_server *server, CUresult status)
{
    set_once(&server->region->deferred_error, status);
}

size_t channel_server_put_output(struct channel_server *server, enum region_output kind,
                                 const char *bytes, size_t size)
{
    struct region *region = server->region;
    size_t put = output_area_put(&region->output[kind], &server->output_tail[kind], bytes, size);

    if (put > 0)
        atomic_store_explicit(&region->output_notifications, ++server->output_notifications,
                              memory_order_release);
    return put;
}

/* Partner: channel_output_pending(). */
void channel_server_set_output_pending(struct channel_server *server, bool pending)
{
    atomic_store_explicit(&server->region->output_pending, pending, memory_order_release);
}

void channel_server_want_move(struct channel_server *server, bool wanted)
{
    atomic_store_explicit(&server->region->move_wanted, wanted, memory_order_relaxed);
}

/* Partner: channel_leave_change(). */
uint32_t channel_server_leave(const struct channel_server *server)
{
    return atomic_load_explicit(&server->region->leave, memory_order_acquire);
}

/* Partner: channel_leave(). */
bool channel_server_leave_change(struct channel_server *server, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong_explicit(&server->region->leave, &from, to,
                                                   memory_order_acq_rel, memory_order_acquire);
}

void channel_server_want_hold(struct channel_server *server, bool wanted)
{
    atomic_store_explicit(&server->region->hold_wanted, wanted, memory_order_relaxed);
}

void channel_server_set_traced(struct channel_server *server, bool traced)
{
    atomic_store_explicit(&server->region->traced, traced, memory_order_relaxed);
}

void channel_server_put_load(struct channel_server *server, struct channel_load load)
{
    atomic_store_explicit(&server->region->copiers, load.copiers, memory_order_relaxed);
    atomic_store_explicit(&server->region->spin_ns, load.spin_ns, memory_order_relaxed);
    atomic_store_explicit(&server->region->yield_ns, load.yield_ns, memory_order_relaxed);
}
