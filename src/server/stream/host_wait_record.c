/* SPDX-License-Identifier: Apache-2.0 */
#include "host_wait_record.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "host_wait.h"
#include "quota.h"
#include "server_dispatch.h"
#include "spare_events.h"
#include "stream_state.h"
#include "window.h"

uint32_t host_wait_word_load(const struct session *session, uint32_t word)
{
    return atomic_load_explicit(window_host_wait_word(session->window, word), memory_order_acquire);
}

bool host_wait_is_over(const struct host_wait *wait)
{
    return !wait->passed || driver.cuEventQuery(wait->passed) != CUDA_ERROR_NOT_READY;
}

void host_wait_forget(struct session *session, struct host_wait *wait)
{
    struct session_streams *streams = session->streams;

    if (streams->next_look == &wait->link)
        streams->next_look = wait->link.next;
    list_remove(&wait->link);
    streams->host_wait_count--;
    quota_give(session, QUOTA_WAITS, 1);
    if (wait->passed)
        spare_event_keep(wait->device, wait->passed);
    free(wait);
}

static struct host_wait *next_to_look_at(struct session_streams *streams)
{
    if (!streams->next_look || streams->next_look == &streams->host_waits)
        streams->next_look = streams->host_waits.next;
    struct host_wait *wait = container_of(streams->next_look, struct host_wait, link);

    streams->next_look = wait->link.next;
    return wait;
}

/* Streams pass their waits in any order. So each call looks at two, and the next call at the two
 * behind them. The record then keeps at most twice the waits that it needs. */
static void forget_passed(struct session *session, unsigned looks)
{
    while (looks-- && !list_empty(&session->streams->host_waits)) {
        struct host_wait *wait = next_to_look_at(session->streams);

        if (host_wait_is_over(wait))
            host_wait_forget(session, wait);
    }
}

/* No value of the word ends such a wait: no bit is asked for, or no bit of zero is. */
static bool can_never_end(uint64_t value, unsigned flags, bool wide)
{
    uint64_t all = wide ? UINT64_MAX : UINT32_MAX;

    flags &= ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH;
    return (flags == CU_STREAM_WAIT_VALUE_AND && value == 0) ||
           (flags == CU_STREAM_WAIT_VALUE_NOR && value == all);
}

static CUresult check_wait(struct session *session, uint64_t value, unsigned flags, bool wide)
{
    if (can_never_end(value, flags, wide)) {
        session_log_error(session, "cuStreamWaitValue: no value ends this wait");
        return CUDA_ERROR_INVALID_VALUE;
    }
    unsigned count = session->streams->host_wait_count;
    forget_passed(session, count < quota(QUOTA_WAITS) ? 2 : count);
    return quota_allows(session, QUOTA_WAITS, 1) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void enlist(struct session *session, struct host_wait *wait)
{
    list_append(&session->streams->host_waits, &wait->link);
    session->streams->host_wait_count++;
    session->streams->has_host_waits = true;
    quota_add(session, QUOTA_WAITS, 1);
}

CUresult host_wait_record(struct stream *stream, uint64_t address, uint64_t value, unsigned flags,
                          bool wide, struct host_wait **ret_wait)
{
    struct session *session = stream->session;
    CUresult result = check_wait(session, value, flags, wide);
    struct host_wait *wait = result == CUDA_SUCCESS ? calloc(1, sizeof(*wait)) : NULL;

    if (!wait)
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
    *wait = (struct host_wait){.device = stream->device,
                               .stream_word = stream->word,
                               .address = address,
                               .value = value,
                               .flags = flags & ~CU_STREAM_WAIT_VALUE_FLUSH,
                               .wide = wide};
    enlist(session, wait);
    result = spare_event_take(stream->device, &wait->passed);
    if (result != CUDA_SUCCESS)
        host_wait_forget(session, wait);
    *ret_wait = wait;
    return result;
}

bool host_waits_in(struct session *session, uint64_t address, uint64_t size)
{
    forget_passed(session, session->streams->host_wait_count);
    list_for_each (struct host_wait, wait, &session->streams->host_waits, link) {
        if (wait->address - address < size)
            return true;
    }
    return false;
}

void host_waits_forget_all(struct session *session)
{
    list_for_each_safe (struct host_wait, wait, &session->streams->host_waits, link)
        host_wait_forget(session, wait);
}
