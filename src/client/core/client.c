/* SPDX-License-Identifier: Apache-2.0 */
/* The one client of the process, and the errors that its calls report. */
#include "client.h"

#include "client_entry.h"
#include "client_printf.h"
#include "cuda_error.h"
#include "managed_hooks.h"
#include "recovery_hook.h"

struct client *client;
_Atomic int client_mode_word = CLIENT_COLD;

CUresult client_asked_error(void)
{
    CUresult result = recovery_client_error();

    if (result != CUDA_SUCCESS)
        return result;
    result = channel_take_deferred_error(&client->channel);
    if (result != CUDA_SUCCESS && cuda_error_is_fatal(result))
        channel_break(&client->channel); /* the server is about to report it to every client */
    return result;
}

CUresult client_sync_error(void)
{
    CUresult result = client_asked_error();

    printf_output_collect();
    managed_pull();
    return result;
}

/* ---- the mode ---- */

void client_mode_change(int from, int to)
{
    atomic_compare_exchange_strong_explicit(&client_mode_word, &from, to, memory_order_release,
                                            memory_order_relaxed);
}

/* Of the addresses of the window up to those of the host, a thread reaches managed memory only. */
int client_mode_of_thread(void)
{
    uint64_t frame = (uint64_t)(uintptr_t)__builtin_frame_address(0);

    return frame >= client->window_base && frame < client->host_base ? CLIENT_ON_MANAGED
                                                                     : CLIENT_FUNNEL;
}
