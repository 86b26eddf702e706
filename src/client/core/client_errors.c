/* SPDX-License-Identifier: Apache-2.0 */
/* The errors that calls have returned to the program, each once, in the user's log. */
#include <string.h>

#include "client.h"
#include "client_call.h"
#include "client_entry.h"
#include "client_log.h"
#include "cuda_error.h"
#include "error_lines.h"
#include "first_times.h"
#include "wire_calls.h"

#define REASON_MAX 515

/* The command that failed was the last one, but other threads may have sent some since. */
#define REASON_WITHIN 8

/* A kernel that the program looks for may not be there, which is an answer. Or the driver cannot
 * load its code, and then the server says why. */
static bool may_be_mistake(const char *name, CUresult result)
{
    static const char *const calls[] = {"cuModuleLoad", "cuModuleGetFunction", "cuLibraryLoad",
                                        "cuLibraryGetKernel", "cuKernelGetFunction"};

    for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (!strncmp(name, calls[i], strlen(calls[i])))
            return result == CUDA_ERROR_NOT_FOUND || result == CUDA_ERROR_NOT_SUPPORTED;
    return false;
}

/* After an error that ends the context every call returns it, so its calls count as one. */
static bool is_first(const char *name, CUresult result)
{
    static struct first_times noted = FIRST_TIMES_INIT;

    return first_time(&noted, cuda_error_is_fatal(result) ? "" : name, (int)result);
}

/* Errors that the server found, and not this library: only these are worth a round trip. */
static bool is_of_server(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_MAP_FAILED:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION:
        return true;
    default:
        return false;
    }
}

/* ": " and the reason in the server's log, or "". */
static void ask_reason(char ret_text[REASON_MAX])
{
    const struct wire_fnReason in = {.within = REASON_WITHIN};
    struct wire_fnReason_reply out = {.text = ret_text + 2, .text_capacity = REASON_MAX - 3};

    *ret_text = '\0';
    if (!client || client_error() != CUDA_SUCCESS)
        return;
    call_begin();
    if (wire_fnReason(&client->channel, &in, &out) == CUDA_SUCCESS && out.text_size) {
        memcpy(ret_text, ": ", 2);
        ret_text[2 + out.text_size] = '\0';
    }
    call_end();
}

void client_error_returned(const char *name, CUresult result)
{
    const char *error = cuda_error_name(result);
    bool needs_reason = may_be_mistake(name, result);
    char reason[REASON_MAX] = "";

    error_lines_add(name, result);
    if (cuda_error_is_expected(name, result) && !needs_reason)
        return;
    if (needs_reason)
        ask_reason(reason);
    if ((needs_reason && !*reason) || !is_first(name, result))
        return;
    if (is_of_server(result))
        ask_reason(reason);
    client_log_to_file((int)result, "%s returned %s (%d)%s; explained by: funnel why %d", name,
                       error ? error : "an unknown error", (int)result, reason, (int)result);
}
