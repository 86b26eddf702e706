/* SPDX-License-Identifier: Apache-2.0 */
/* See attach_attempt.h. */
#include "attach_attempt.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "clock.h"
#include "descriptor_limit.h"
#include "fd.h"
#include "shm.h"
#include "sock.h"
#include "text.h"
#include "wire_calls.h"

/* A daemon that starts a server first waits for the driver. */
#define WELCOME_TIMEOUT_MS 120000

/* A server may end after the daemon has passed the socket on and before it answers: pauses before
 * new tries. */
static const unsigned pauses_ms[] = {10, 40, 160, 640};

enum attach_outcome attempt_refuse(struct attempt *attempt, CUresult status, const char *why)
{
    attempt->status = status;
    text_copy(attempt->why, attempt->why_size, why);
    return ATTACH_REFUSED;
}

void attempt_close_descriptors(struct attempt *attempt)
{
    for (int i = 0; i < ATTACH_FDS; i++)
        fd_close(&attempt->fds[i]);
}

enum attach_outcome attempt_send_hello(struct attempt *attempt)
{
    const struct hello *hello = &attempt->request.hello;

    if (sock_send(attempt->socket, hello, sizeof(*hello), NULL, 0) < 0)
        return attempt_refuse(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                              "the daemon closed the connection at once");
    return ATTACHED;
}

/* Nothing here may wrap around: addresses are below 2^47, sizes below 2^46. */
#define ADDRESS_END (UINT64_C(1) << 47)
#define SIZE_END (UINT64_C(1) << 46)

static bool range_contains(uint64_t start, uint64_t size, uint64_t address, uint64_t length)
{
    return address >= start && length <= size && address - start <= size - length;
}

static bool window_is_valid(const struct attach_offer *offer)
{
    return offer->window_base >= WINDOW_FIRST && offer->window_base < ADDRESS_END &&
           offer->device_span < SIZE_END && offer->host_span < SIZE_END &&
           offer->device_count >= 1 && offer->device_count <= ATTACH_DEVICES_MAX &&
           offer->device_stride > 0 &&
           offer->device_span / offer->device_count >= offer->device_stride;
}

static bool words_are_valid(const struct attach_offer *offer, uint64_t address, uint32_t count)
{
    return count > 0 && address % sizeof(uint32_t) == 0 &&
           range_contains(offer->gpu_address, offer->gpu_size, address,
                          sizeof(uint32_t) * (uint64_t)count);
}

static bool offer_is_valid(const struct attach_offer *offer)
{
    return window_is_valid(offer) && offer->gpu_size > 0 &&
           range_contains(offer->window_base + offer->device_span, offer->host_span,
                          offer->gpu_address, offer->gpu_size) &&
           words_are_valid(offer, offer->fence_address, offer->fence_count) &&
           words_are_valid(offer, offer->host_wait_address, offer->host_wait_count) &&
           offer->host_wait_count >= offer->fence_count &&
           offer->staging_size >= GPU_REGION_STAGING_SLOT_SIZE &&
           range_contains(offer->gpu_address, offer->gpu_size, offer->staging_address,
                          offer->staging_size);
}

enum attach_outcome attempt_receive_offer(struct attempt *attempt)
{
    size_t fd_count = 0;
    ssize_t bytes = sock_recv(attempt->socket, &attempt->offer, sizeof(attempt->offer),
                              attempt->fds, ATTACH_FDS, &fd_count, WELCOME_TIMEOUT_MS);
    struct welcome *welcome = &attempt->offer.welcome;

    for (size_t i = bytes < 0 ? 0 : fd_count; i < ATTACH_FDS; i++)
        attempt->fds[i] = -1;
    attempt->lost = bytes == 0 || bytes == -ECONNRESET;
    if (bytes < (ssize_t)sizeof(*welcome) || welcome->magic != WELCOME_MAGIC)
        return attempt_refuse(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                              "the daemon or its server ended without an answer");
    welcome->text[sizeof(welcome->text) - 1] = '\0';
    if (welcome->status != 0)
        return attempt_refuse(attempt, (CUresult)welcome->status, welcome->text);
    if (bytes != sizeof(attempt->offer) || fd_count != ATTACH_FDS ||
        !offer_is_valid(&attempt->offer))
        return attempt_refuse(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                              "the server's offer is not valid; is the server of another release?");
    return ATTACHED;
}

bool attempt_answer(struct attempt *attempt, enum attach_verdict verdict)
{
    struct attach_reply reply = {.magic = ATTACH_REPLY_MAGIC, .verdict = verdict};

    attempt->lost = sock_send(attempt->socket, &reply, sizeof(reply), NULL, 0) != 0;
    return !attempt->lost;
}

size_t offer_window_size(const struct attach_offer *offer)
{
    return offer->device_span + offer->host_span;
}

int attempt_map_gpu_region(struct attempt *attempt)
{
    const struct attach_offer *offer = &attempt->offer;
    int fd = attempt->fds[ATTACH_FD_GPU];
    void *mapped;
    int r = shm_check(fd, offer->gpu_size);

    if (r == 0)
        r = shm_map(fd, offer->gpu_size, (void *)(uintptr_t)offer->gpu_address, SHM_REPLACE,
                    &mapped);
    if (r == 0)
        madvise(mapped, offer->gpu_size, MADV_DONTFORK);
    return r;
}

/* A text has an end, and the rest of a record is numbers that are checked where they are used. */
static void end_texts(struct device_record *records, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        records[i].name[sizeof(records[i].name) - 1] = '\0';
        records[i].pci_bus_id[sizeof(records[i].pci_bus_id) - 1] = '\0';
    }
}

_Static_assert(sizeof(struct device_record) == WIRE_DEVICE_RECORD_BYTES,
               "a record of another size is another protocol");

int attempt_read_devices(const struct attempt *attempt, struct device_record **ret_records)
{
    uint32_t count = attempt->offer.device_count;
    int fd = attempt->fds[ATTACH_FD_DEVICES];
    struct device_record *records = calloc(count, sizeof(*records));
    int r = records ? shm_check(fd, count * sizeof(*records)) : -ENOMEM;

    if (r == 0)
        r = pread_all(fd, records, count * sizeof(*records), 0);
    if (r < 0) {
        free(records);
        return r;
    }
    end_texts(records, count);
    *ret_records = records;
    return 0;
}

static void pause_ms(unsigned ms)
{
    struct timespec pause = {.tv_nsec = (long)(ms * NS_PER_MS)};

    while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
        ;
}

bool attempt_pause(const struct attempt *attempt, size_t tries)
{
    if (!attempt->lost || tries == sizeof(pauses_ms) / sizeof(*pauses_ms))
        return false;
    pause_ms(pauses_ms[tries]);
    return true;
}

/* The kernel closes descriptors that a message brings to a process without room for them, so that
 * the message looks wrong. */
void attempt_explain(struct attempt *attempt, enum attach_outcome outcome)
{
    if (outcome != ATTACH_REFUSED || !descriptors_are_short(ATTACH_FDS + 1))
        return;
    attempt->lost = false;
    text_format(attempt->why, attempt->why_size,
                "the program has too few descriptors left: its limit of open files (ulimit -n) is "
                "%llu, and libcuda needs %u more; raise it",
                (unsigned long long)descriptor_limit(), ATTACH_FDS + 1);
}
