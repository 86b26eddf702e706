/* SPDX-License-Identifier: Apache-2.0 */
/* See swap_slices.h. */
#include "swap_slices.h"

#include "swapping.h"

/* A device has so many slices. */
#define SLICES 64u

static uint64_t slice_of(const struct device *device)
{
    return device->record.total_memory / SLICES;
}

static uint64_t smaller_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- out ---- */

/* Those that wait for room look at once. */
static void tell_progress(const struct session *session)
{
    session->server->swapping->eviction.freed++;
}

static enum suspend_result move_slice_out(struct session *session, const struct swap_part *rest,
                                          uint64_t *copied)
{
    const struct device *device = session_device(session, rest->device);
    const struct swap_part slice = {rest->device, smaller_of(rest->bytes, slice_of(device))};
    uint64_t of_slice = 0;
    enum suspend_result result = swap_out(session, &slice, &of_slice);

    *copied += of_slice;
    if (result == SUSPEND_OK)
        tell_progress(session);
    return result;
}

enum suspend_result swap_slices_out(struct session *session, const struct swap_part *part,
                                    uint64_t *ret_copied)
{
    uint64_t began_with = swap_bytes(session, part->device), left = 0, before;
    enum suspend_result result;

    *ret_copied = 0;
    do {
        const struct swap_part rest = {part->device, part->bytes - left};
        before = left;
        result = move_slice_out(session, &rest, ret_copied);
        left = swap_bytes(session, part->device) - began_with;
    } while (result == SUSPEND_OK && left > before && left < part->bytes);
    return left ? SUSPEND_OK : result;
}

/* ---- in ---- */

static struct swap_room find_room(struct session *session)
{
    struct swap_room room = {{0}};
    size_t free_bytes, total;

    for (unsigned i = 0; i < session->server->devices.count; i++) {
        const struct device *device = session_device(session, i);
        if (swap_bytes(session, i) && !session_visit(session, device) &&
            !driver.cuMemGetInfo_v2(&free_bytes, &total))
            room.bytes[i] = free_bytes;
    }
    return room;
}

/* Of each device at most. A granule may be larger than a slice. */
static enum suspend_result move_slice_in(struct session *session)
{
    struct swap_room all = find_room(session), slice = all;
    uint64_t before = swap_bytes_in_all(session);

    for (unsigned i = 0; i < session->server->devices.count; i++)
        slice.bytes[i] = smaller_of(slice.bytes[i], slice_of(session_device(session, i)));
    enum suspend_result result = swap_in(session, &slice);
    return result == SUSPEND_OK && swap_bytes_in_all(session) == before ? swap_in(session, &all)
                                                                        : result;
}

enum suspend_result swap_slices_in(struct session *session)
{
    enum suspend_result result = SUSPEND_OK;
    uint64_t before = swap_bytes_in_all(session) + 1, away;

    while (result == SUSPEND_OK && (away = swap_bytes_in_all(session)) && away < before) {
        before = away;
        result = move_slice_in(session);
    }
    return result == SUSPEND_OK && swap_bytes_in_all(session) ? SUSPEND_NO_MEMORY : result;
}
