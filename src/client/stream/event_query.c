/* SPDX-License-Identifier: Apache-2.0 */
/* See event_query.h. */
#include "event_query.h"

#include <time.h>

#include "client.h"
#include "wire_calls.h"

/* How often the server is asked about an event that other processes record. */
#define FIRST_PAUSE_NS 20000
#define LAST_PAUSE_NS 1000000

CUresult event_query(uint64_t event, bool *ret_done)
{
    struct wire_cuEventQuery in = {.hEvent = event};
    struct wire_cuEventQuery_reply out;
    CUresult result = wire_cuEventQuery(&client->channel, &in, &out);

    if (result == CUDA_SUCCESS)
        *ret_done = out.done;
    return result;
}

/* The word that another process's stream will write is not ours to read, so the server is asked,
 * less and less often. */
CUresult event_query_wait(uint64_t event)
{
    struct timespec pause = {.tv_nsec = FIRST_PAUSE_NS};

    for (;;) {
        bool done = false;
        CUresult result = event_query(event, &done);

        if (result != CUDA_SUCCESS || done)
            return result;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < LAST_PAUSE_NS)
            pause.tv_nsec *= 2;
    }
}
