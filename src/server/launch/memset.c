/* SPDX-License-Identifier: Apache-2.0 */
/* Memsets, which go to the driver with the launches of a training (fill_kernel.h). */
#include "copy.h"
#include "fill_kernel.h"
#include "launch_batch.h"
#include "server_dispatch.h"
#include "stream.h"

/* Of other programs each memset is made at once. */
static bool joins_launches(struct session *session, const struct wire_fnMemset *in,
                           struct stream *stream)
{
    return atomic_load_explicit(&session->gathers, memory_order_relaxed) &&
           fill_kernel_add(session, in, stream);
}

CUresult serve_fnMemset(struct session *session, const struct wire_fnMemset *in,
                        struct stream *hStream)
{
    bool valid = copy_check_memset(session, "fnMemset", in);

    if (valid && joins_launches(session, in, hStream))
        return CUDA_SUCCESS;
    launch_batch_flush(session);
    return valid ? copy_memset(session, in, hStream)
                 : stream_end_work(hStream, in->seq, CUDA_ERROR_INVALID_VALUE);
}
