/* SPDX-License-Identifier: Apache-2.0 */
/* The copy subsystem's part of a session and of a device. */
#include "copy_state.h"

#include <errno.h>
#include <stdlib.h>

#include "address_scan.h"
#include "copy.h"
#include "copy_fence.h"
#include "copy_kernel.h"
#include "shared_copy_stream.h"

static void prepare_device(struct device *device, const struct copy_options *options)
{
    if (!options->no_copy_kernel)
        copy_kernel_load(device);
    if (!options->no_address_scan)
        address_scan_load(device);
    if (options->no_copy_load)
        return;
    copy_fence_prepare(device);
    if (!options->no_shared_stream)
        shared_copy_stream_open(device);
}

int server_copies_init(struct server *server, const struct copy_options *options)
{
    for (unsigned i = 0; i < server->devices.count; i++) {
        struct device *device = &server->devices.device[i];

        device->copies = calloc(1, sizeof(*device->copies));
        if (!device->copies)
            return -ENOMEM;
        prepare_device(device, options);
    }
    return 0;
}

void server_copies_fini(struct server *server)
{
    for (unsigned i = 0; i < server->devices.count; i++)
        free(server->devices.device[i].copies);
}

int session_copies_init(struct session *session)
{
    session->copies = calloc(1, sizeof(*session->copies));
    return session->copies ? 0 : -ENOMEM;
}

void session_copies_fini(struct session *session)
{
    free(session->copies);
}

void copy_counters(const struct session *session, uint64_t *ret_count, uint64_t *ret_bytes)
{
    uint64_t bytes[COPY_WAYS];

    copy_direction_bytes(session, bytes);
    *ret_count = session->copies->count;
    *ret_bytes = bytes[COPY_UP] + bytes[COPY_DOWN] + bytes[COPY_WITHIN];
}

/* Partner: copy_count(). */
void copy_direction_bytes(const struct session *session, uint64_t ret_bytes[COPY_WAYS])
{
    for (unsigned way = 0; way < COPY_WAYS; way++)
        ret_bytes[way] = atomic_load_explicit(&session->copies->bytes[way], memory_order_relaxed);
}
