/* SPDX-License-Identifier: Apache-2.0 */
/* The one client of the process, and the errors that its calls report. */
#include "client.h"

#include "client_entry.h"
#include "client_printf.h"
#include "cuda_error.h"
#include "managed_hooks.h"

struct client *client;
_Atomic int client_mode_word = CLIENT_COLD;

CUresult client_asked_error(void)
{
    CUresult result = client_error();

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
