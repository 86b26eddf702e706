/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors of programs that run on the software GPU without Funnel. They go to the user's log,
 * where those of other programs are, and where funnel why looks for them.
 */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>

#include "cuda_error.h"
#include "first_times.h"
#include "soft_entry.h"
#include "soft_extension.h"
#include "text.h"
#include "user_log.h"

/* Set by Funnel's server or client library, before other threads make calls. */
static atomic_bool are_logged;

void funnelErrorsAreLogged(void)
{
    atomic_store_explicit(&are_logged, true, memory_order_relaxed);
}

static void log_error(const char *name, CUresult result)
{
    const char *error = cuda_error_name(result);
    char path[PATH_MAX], text[256];

    if (user_log_path(path, sizeof(path)))
        return;
    text_format(text, sizeof(text),
                "%s of the software GPU returned %s (%d); explained by: funnel why %d", name,
                error ? error : "an unknown error", (int)result, (int)result);
    user_log_line(path, (int)result, text);
}

/* After an error that ends the context every call returns it, so its calls count as one. */
void soft_error_returned(const char *name, CUresult result)
{
    static struct first_times noted = FIRST_TIMES_INIT;
    int saved_errno = errno;

    if (!atomic_load_explicit(&are_logged, memory_order_relaxed) &&
        !cuda_error_is_expected(name, result) &&
        first_time(&noted, cuda_error_is_fatal(result) ? "" : name, (int)result))
        log_error(name, result);
    errno = saved_errno;
}
