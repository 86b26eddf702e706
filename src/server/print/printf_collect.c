/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the driver's buffers to the client whose kernels filled them.
 *
 * NVIDIA's driver writes the buffer of a context whenever a call synchronizes with any stream of
 * it, even an idle one that was never used, and such a call waits for nothing. All contexts write
 * to the same place, so the output of two of them is told apart by collecting one at a time.
 */
#include "print_state.h"

#include "cleanup.h"
#include "driver_output.h"
#include "log.h"

#define LOGGED_MAX 1024 /* bytes of output in one line of the log */

static void keep_output_held(struct session *owner)
{
    char text[16384];
    size_t size;

    while ((size = driver_output_read(OUTPUT_STDOUT, text, sizeof(text))) > 0) {
        if (!owner)
            log_line("Device printf output of an unknown client: %.*s",
                     size < LOGGED_MAX ? (int)size : LOGGED_MAX, text);
        else if (!backlog_add(&owner->printf->backlog, text, size))
            log_line("Client " CLIENT_FORMAT " does not read its device printf output: %zu "
                     "bytes are lost",
                     CLIENT_ARGS(owner), size);
    }
}

/* The one client whose kernels may print anywhere. NULL when there is none, or when there are
 * several. */
static struct session *find_only_holder_held(struct server_printf *printer)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);
    struct session *only = NULL;

    for (unsigned i = 0; i < DEVICE_CONTEXTS_MAX; i++) {
        const struct printf_turn *turn = &printer->turns[i];

        if (turn->late.count || (turn->holder && only && turn->holder != only))
            return NULL;
        if (turn->holder)
            only = turn->holder;
    }
    return only;
}

static struct session *find_holder_held(struct server_printf *printer,
                                        const struct printf_turn *turn)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);

    return turn->holder;
}

void printf_collect_strays_held(struct server_printf *printer)
{
    keep_output_held(find_only_holder_held(printer));
}

/* What late work has printed until now comes out as well, so only the next output has an owner. */
CUresult printf_collect_held(struct server_printf *printer, const struct device *device)
{
    struct printf_turn *turn = printf_turn_of(printer, device);
    bool has_late = turn->late.count > 0;
    struct session *owner = has_late ? NULL : find_holder_held(printer, turn);

    if (!owner || owner != find_only_holder_held(printer))
        printf_collect_strays_held(printer);
    if (has_late)
        stream_probe_is_done(&turn->late);
    CUresult result = driver.cuStreamSynchronize(device->watch);
    keep_output_held(owner);
    return result;
}

bool printf_deliver_held(struct session *session)
{
    struct backlog *backlog = &session->printf->backlog;

    backlog_deliver(backlog, session->channel, OUTPUT_STDOUT);
    return backlog_empty(backlog);
}
