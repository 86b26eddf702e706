/* SPDX-License-Identifier: Apache-2.0 */
/* See profile.h. The session's thread begins and ends a profile as it does a trace: by a change of
 * its limits (worker.c). */
#include "profile.h"

#include <stdlib.h>

#include "blob.h"
#include "cleanup.h"
#include "fd.h"
#include "server_dispatch.h"
#include "session_life.h"
#include "shm.h"
#include "trace.h"
#include "trace_file.h"

/* Missing pages would be charged to this process. */
static struct trace_file *open_profile(int fd)
{
    struct trace_file *file = calloc(1, sizeof(*file));

    if (file && !shm_check(fd, PROFILE_FILE_SIZE) && shm_is_populated(fd, PROFILE_FILE_SIZE) &&
        !trace_file_open(file, fd, PROFILE_RECORDS_MAX))
        return file;
    free(file);
    return NULL;
}

static CUresult begin_profile(struct session *session, uint32_t blob)
{
    _cleanup_fd_ int fd = -1;
    CUresult result = blob_take_fd(session, blob, &fd);

    if (result != CUDA_SUCCESS)
        return result;
    if (session->life->profile)
        return CUDA_ERROR_NOT_PERMITTED;
    session->life->profile = open_profile(fd);
    if (!session->life->profile) {
        session_log_error(session, "fnProfile: the descriptor is not memory for records");
        return CUDA_ERROR_INVALID_VALUE;
    }
    atomic_fetch_or(&session->limits.changed, CHANGED_LIMITS);
    return CUDA_SUCCESS;
}

void session_profile_close(struct session *session, struct trace_file *profile)
{
    if (session->life->profile == profile)
        session->life->profile = NULL;
    if (profile)
        trace_file_close(profile);
    free(profile);
}

/* The loop that traces the session notices, and closes the file. */
static void end_profile(struct session *session)
{
    struct trace_file *profile = session->life->profile;

    if (!session->life->tracing)
        session_profile_close(session, profile);
    session->life->profile = NULL;
    atomic_fetch_or(&session->limits.changed, CHANGED_LIMITS);
}

CUresult serve_fnProfile(struct session *session, const struct wire_fnProfile *in)
{
    bool is_on = session->life->profile && session->life->tracing;

    if (in->action == WIRE_PROFILE_BEGIN)
        return begin_profile(session, in->blob);
    if (in->action == WIRE_PROFILE_COLLECT && is_on)
        session_trace_collect(session->life->tracing);
    else if (in->action == WIRE_PROFILE_END && is_on)
        session_trace_collect_last(session->life->tracing);
    if (in->action == WIRE_PROFILE_END)
        end_profile(session);
    return in->action <= WIRE_PROFILE_END ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult serve_fnCorrelation(struct session *session, const struct wire_fnCorrelation *in)
{
    if (session->life->tracing)
        session_trace_correlate(session->life->tracing, in->number);
    return CUDA_SUCCESS;
}
