/* SPDX-License-Identifier: Apache-2.0 */
#include "managed_check.h"

#include "client_log.h"
#include "client_stream.h"
#include "managed_area.h"
#include "stream_commands.h"
#include "switch.h"
#include "wire_calls.h"

static bool stream_works_locked(const struct managed_allocation *managed)
{
    const struct stream *stream = handles_get(&client->handles, WIRE_STREAM, managed->stream);

    return stream && !stream_is_done_locked(stream);
}

static bool is_in_use_locked(const struct managed_allocation *managed)
{
    switch (managed_attachment_locked(managed)) {
    case CU_MEM_ATTACH_HOST:
        return false;
    case CU_MEM_ATTACH_SINGLE:
        return stream_works_locked(managed);
    default:
        return !stream_all_idle_locked();
    }
}

static bool is_forbidden(uint64_t address)
{
    const struct managed_allocation *managed;
    bool forbidden;

    pthread_mutex_lock(&client->lock);
    channel_lock(&client->channel);
    managed_allocations_lock();
    managed = managed_at_locked(address);
    forbidden = managed && is_in_use_locked(managed);
    managed_allocations_unlock();
    channel_unlock(&client->channel);
    pthread_mutex_unlock(&client->lock);
    return forbidden;
}

bool check_refuses(const struct page_fault *fault)
{
    static _Atomic int known;

    if (!switch_is_on_once(&known, "FUNNEL_MANAGED_CHECK") || !is_forbidden(fault->address))
        return false;
    client_log("thread %d %s managed memory at %#llx while work is in flight that may use it; "
               "synchronize first, or attach the memory to the host or to another stream",
               fault->thread, fault->writes ? "writes" : "reads",
               (unsigned long long)fault->address);
    return page_watch_refuse(area_watch(), fault);
}
