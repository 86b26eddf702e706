/* SPDX-License-Identifier: Apache-2.0 */
/* See attach_again.h. */
#include "attach_again.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach_attempt.h"
#include "attach_socket.h"
#include "daemon_trust.h"
#include "fd.h"
#include "shm.h"

static bool is_same_place(const struct attach_offer *offer)
{
    return offer->window_base == client->window_base &&
           offer->window_base + offer_window_size(offer) == client->window_end &&
           offer->device_span == client->device_span &&
           offer->device_stride == client->device_stride &&
           offer->fence_address == (uintptr_t)client->fences &&
           offer->host_wait_address == (uintptr_t)client->host_wait_words &&
           offer->fence_count == client->fence_count &&
           offer->host_wait_count == client->host_wait_count &&
           offer->staging_address == client->staging_address &&
           offer->staging_size / GPU_REGION_STAGING_SLOT_SIZE == client->staging_slots;
}

static bool are_same_devices(const struct attempt *attempt)
{
    uint32_t count = attempt->offer.device_count;
    struct device_record *records;
    bool same = true;

    if (count != client->record_count || attempt_read_devices(attempt, &records) < 0)
        return false;
    for (uint32_t i = 0; i < count; i++)
        same &= !memcmp(records[i].uuid, client->records[i].uuid, sizeof(records[i].uuid)) &&
                records[i].context_status == client->records[i].context_status;
    free(records);
    return same;
}

/* The new region gets the contents of the old one: fences that have been reached stay reached, and
 * host waits that have ended stay ended. */
static int move_gpu_region(struct attempt *attempt)
{
    const struct attach_offer *offer = &attempt->offer;
    int fd = attempt->fds[ATTACH_FD_GPU];
    void *mapped;
    int r = shm_check(fd, offer->gpu_size);

    if (r == 0)
        r = shm_map(fd, offer->gpu_size, NULL, 0, &mapped);
    if (r < 0)
        return r;
    memcpy(mapped, (const void *)(uintptr_t)offer->gpu_address, offer->gpu_size);
    shm_unmap(mapped, offer->gpu_size);
    return attempt_map_gpu_region(attempt);
}

/* The descriptor keeps its number. */
static int move_socket(const struct attempt *attempt)
{
    if (dup3(attempt->socket, client->socket, O_CLOEXEC) < 0)
        return -errno;
    attach_note_socket(client, client->socket);
    return 0;
}

static bool move_in(struct attempt *attempt)
{
    bool is_mapped = move_gpu_region(attempt) == 0 && move_socket(attempt) == 0 &&
                     channel_reopen(&client->channel, attempt->fds[ATTACH_FD_CONTROL],
                                    attempt->offer.region_size, attempt->offer.ring_bytes) == 0;

    /* A server that has ended since its offer is lost as one that ended before. */
    attempt->lost = is_mapped && !attempt_answer(attempt, ATTACH_OK);
    return is_mapped && !attempt->lost;
}

static bool attach_again_once(struct attempt *attempt)
{
    enum attach_outcome outcome = ATTACHED;

    if (daemon_connect_trusted(client->request.path, &attempt->socket) != 0)
        outcome =
            attempt_refuse(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED, "the daemon does not answer");
    if (outcome == ATTACHED)
        outcome = attempt_send_hello(attempt);
    if (outcome == ATTACHED)
        outcome = attempt_receive_offer(attempt);
    if (outcome == ATTACHED && (!is_same_place(&attempt->offer) || !are_same_devices(attempt)))
        outcome = attempt_refuse(
            attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
            "the server has other devices, or another place for the client's memory");
    if (outcome == ATTACHED && !move_in(attempt))
        outcome = attempt_refuse(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                                 attempt->lost ? "the server ended during the attach"
                                               : "the server's shared memory could not be mapped");
    attempt_close_descriptors(attempt);
    fd_close(&attempt->socket);
    attempt_explain(attempt, outcome);
    return outcome == ATTACHED;
}

bool attach_again(char *why, size_t why_size)
{
    for (size_t tries = 0;; tries++) {
        struct attempt attempt = {.socket = -1,
                                  .fds = {-1, -1, -1},
                                  .request = client->request,
                                  .why = why,
                                  .why_size = why_size};
        attempt.request.hello.window_base = client->window_base;
        bool done = attach_again_once(&attempt);

        if (done || !attempt_pause(&attempt, tries))
            return done;
    }
}
