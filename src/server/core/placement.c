/* SPDX-License-Identifier: Apache-2.0 */
/* The stream subsystem knows which context is occupied; server.h has a function for that. */
#include "placement.h"

#include "clock.h"
#include "log.h"
#include "server.h"

/* For how long a client that is to be placed waits while both contexts have long kernels. */
#define FREE_CONTEXT_TIMEOUT_NS (500 * NS_PER_MS)

static bool has_bit(uint64_t mask, unsigned ordinal)
{
    return mask >> ordinal & 1;
}

bool session_is_in_spare(const struct session *session, unsigned ordinal)
{
    return has_bit(session->spare_mask, ordinal);
}

const struct device *session_device(const struct session *session, unsigned ordinal)
{
    const struct devices *devices = &session->server->devices;

    return &devices->device[session_is_in_spare(session, ordinal) ? devices->count + ordinal
                                                                  : ordinal];
}

static bool is_occupied(struct session *session, const struct device *device)
{
    return session->server->is_occupied(session, device);
}

/* The spare context is taken only where it is better than the primary one, because kernels do not
 * overlap with those of the other context. On a busy machine short work may be seen in it for long
 * enough to pass for long kernels. So both are looked at again for a while. */
static const struct device *find_free(struct session *session, const struct device *primary,
                                      const struct device *spare)
{
    uint64_t deadline = clock_ns() + FREE_CONTEXT_TIMEOUT_NS;

    while (is_occupied(session, primary)) {
        if (!is_occupied(session, spare))
            return spare;
        if (clock_ns() >= deadline || session->stop)
            break;
    }
    return primary;
}

const struct device *session_find_idle_device(struct session *session, unsigned ordinal)
{
    const struct devices *devices = &session->server->devices;
    const struct device *primary = &devices->device[ordinal];

    if (has_bit(session->placed_mask, ordinal))
        return session_device(session, ordinal);
    return devices->has_spares
               ? find_free(session, primary, &devices->device[devices->count + ordinal])
               : primary;
}

static void place(struct session *session, unsigned ordinal)
{
    const struct device *device = session_find_idle_device(session, ordinal);

    session->placed_mask |= 1ull << ordinal;
    if (device->index == ordinal)
        return;
    session->spare_mask |= 1ull << ordinal;
    session_log_event(session, 0,
                      " works in the spare context of device %u, because long "
                      "kernels run in the primary one",
                      ordinal);
}

const struct device *session_place(struct session *session, const char *call, uint32_t index)
{
    if (!session_find_device(session, call, index))
        return NULL;
    if (session->server->devices.has_spares && !has_bit(session->placed_mask, index))
        place(session, index);
    return session_device(session, index);
}

void session_unplace(struct session *session)
{
    session->placed_mask = 0;
    session->spare_mask = 0;
}

bool session_stay_primary(struct session *session, unsigned ordinal)
{
    if (session_is_in_spare(session, ordinal))
        return false;
    session->placed_mask |= 1ull << ordinal;
    return true;
}
