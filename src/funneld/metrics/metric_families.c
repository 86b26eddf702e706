/* SPDX-License-Identifier: Apache-2.0 */
/* See metric_families.h. */
#include "metric_families.h"

#define CLIENT_VALUE(name, expression)                                       \
    static double name(const struct server_status_row *row, unsigned device) \
    {                                                                        \
        return expression;                                                   \
    }
#define USER_VALUE(name, expression)                    \
    static double name(const struct usage_total *total) \
    {                                                   \
        return expression;                              \
    }

CLIENT_VALUE(gpu, (double)row->usage.gpu_ns[device] / 1e9)
CLIENT_VALUE(sm, (double)row->usage.sm_ns[device] / 1e9)
CLIENT_VALUE(memory, (double)row->memory_used[device])
CLIENT_VALUE(memory_peak, (double)row->memory_peak[device])
CLIENT_VALUE(memory_swapped, (double)row->memory_swapped[device])
CLIENT_VALUE(memory_limit, (double)row->limits.memory_limit[device])
CLIENT_VALUE(memory_soft, (double)row->limits.memory_soft[device])
CLIENT_VALUE(sm_granted, row->sm_granted[device])
CLIENT_VALUE(shared, (double)row->usage.shared_ns / 1e9)
CLIENT_VALUE(copying, (double)row->usage.copy_ns / 1e9)
CLIENT_VALUE(queued, (double)row->usage.queued_ns / 1e9)
CLIENT_VALUE(wait, (double)row->usage.wait_ns / 1e9)
CLIENT_VALUE(queue, (double)row->usage.queue_bytes)
CLIENT_VALUE(launches, (double)row->usage.launches)
CLIENT_VALUE(copies, (double)row->usage.copies)
CLIENT_VALUE(up, (double)row->usage.copied_up)
CLIENT_VALUE(down, (double)row->usage.copied_down)
CLIENT_VALUE(within, (double)row->usage.copied_within)
CLIENT_VALUE(stalls, (double)row->usage.stalls)
CLIENT_VALUE(stalled, (double)row->usage.stalled_ms / 1e3)
CLIENT_VALUE(evictions, (double)row->usage.evictions)
CLIENT_VALUE(swapped_out, (double)row->usage.swapped_out)
CLIENT_VALUE(swapped_in, (double)row->usage.swapped_in)
CLIENT_VALUE(rests, (double)row->rests_ms / 1e3)
CLIENT_VALUE(refusals, (double)row->memory_refused)

const struct client_family client_families[] = {
    {"funnel_client_gpu_seconds", "seconds", "Time in which the client had kernels on the GPU.",
     true, true, gpu},
    {"funnel_client_sm_seconds", "seconds",
     "Multiprocessors that the client's kernels took, times time.", true, true, sm},
    {"funnel_client_memory_bytes", "bytes", "Device memory that the client holds.", false, true,
     memory},
    {"funnel_client_memory_peak_bytes", "bytes", "The most device memory that it held.", false,
     true, memory_peak},
    {"funnel_client_memory_swapped_bytes", "bytes",
     "Device memory of the client that is in the host's instead.", false, true, memory_swapped},
    {"funnel_client_memory_limit_bytes", "bytes", "Its limit of device memory; 0 = none.", false,
     true, memory_limit},
    {"funnel_client_memory_soft_limit_bytes", "bytes", "Its soft limit of device memory; 0 = none.",
     false, true, memory_soft},
    {"funnel_client_sm_granted", "", "Multiprocessors that the client may use.", false, true,
     sm_granted},
    {"funnel_client_rest_seconds", "seconds",
     "For how long the client has had neither work nor CUDA calls.", false, false, rests},
    {"funnel_client_shared_seconds", "seconds",
     "Time of its kernels in which another client had kernels on the same GPU.", true, false,
     shared},
    {"funnel_client_copy_seconds", "seconds", "Time in which the client had copies or memsets.",
     true, false, copying},
    {"funnel_client_queued_seconds", "seconds",
     "Time in which commands of the client waited for the server.", true, false, queued},
    {"funnel_client_queue_wait_mean_seconds", "seconds",
     "How long a command has waited for the server on average.", false, false, wait},
    {"funnel_client_queue_bytes", "bytes", "Commands that wait for the server now.", false, false,
     queue},
    {"funnel_client_launches", "", "Kernels that the client has launched.", true, false, launches},
    {"funnel_client_copies", "", "Copies that the client has made.", true, false, copies},
    {"funnel_client_copied_to_device_bytes", "bytes", "Bytes copied from the host to devices.",
     true, false, up},
    {"funnel_client_copied_from_device_bytes", "bytes", "Bytes copied from devices to the host.",
     true, false, down},
    {"funnel_client_copied_within_bytes", "bytes",
     "Bytes copied between devices, inside one, or inside the host's memory.", true, false, within},
    {"funnel_client_stalls", "", "How often the client was in a call because of another client's.",
     true, false, stalls},
    {"funnel_client_stalled_seconds", "seconds", "For how long it was.", true, false, stalled},
    {"funnel_client_evictions", "",
     "How often the client's memory has left its devices to make room for others.", true, false,
     evictions},
    {"funnel_client_swapped_out_bytes", "bytes",
     "Bytes of device memory that have gone to the host's.", true, false, swapped_out},
    {"funnel_client_swapped_in_bytes", "bytes", "Bytes of it that have come back.", true, false,
     swapped_in},
    {"funnel_client_memory_refusals", "", "How often a memory limit refused an allocation.", true,
     false, refusals},
};
const unsigned client_family_count = sizeof(client_families) / sizeof(*client_families);

static double sum(const uint64_t values[SERVER_MAX_DEVICES])
{
    uint64_t total = 0;

    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        total += values[i];
    return (double)total;
}

USER_VALUE(user_gpu, sum(total->usage.gpu_ns) / 1e9)
USER_VALUE(user_sm, sum(total->usage.sm_ns) / 1e9)
USER_VALUE(user_launches, (double)total->usage.launches)
USER_VALUE(user_copied, (double)server_usage_copied(&total->usage))
USER_VALUE(user_evictions, (double)total->usage.evictions)
USER_VALUE(user_swapped, (double)(total->usage.swapped_out + total->usage.swapped_in))
USER_VALUE(user_stalled, (double)total->usage.stalled_ms / 1e3)
USER_VALUE(user_ended, (double)total->clients)
USER_VALUE(user_failed, (double)total->failed)

const struct user_family user_families[] = {
    {"funnel_user_gpu_seconds", "seconds",
     "Time in which clients of the user had kernels on GPUs, those that ended included.", true,
     user_gpu},
    {"funnel_user_sm_seconds", "seconds", "Multiprocessors that they took, times time.", true,
     user_sm},
    {"funnel_user_launches", "", "Kernels that they launched.", true, user_launches},
    {"funnel_user_copied_bytes", "bytes", "Bytes that they copied.", true, user_copied},
    {"funnel_user_stalled_seconds", "seconds", "Time that they were in calls because of others.",
     true, user_stalled},
    {"funnel_evictions", "",
     "How often memory of the user's clients has left a device to make room for others.", true,
     user_evictions},
    {"funnel_swapped_bytes", "bytes",
     "Bytes of their device memory that have gone to the host's, or come back.", true,
     user_swapped},
    {"funnel_user_clients_ended", "", "Clients of the user that have ended.", true, user_ended},
    {"funnel_user_clients_failed", "", "Clients of the user that ended by an error.", true,
     user_failed},
};
const unsigned user_family_count = sizeof(user_families) / sizeof(*user_families);
