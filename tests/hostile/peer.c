/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire by hand. The window is not reserved here: only the server needs its addresses.
 */
#include "peer.h"

#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "region.h"
#include "shm.h"
#include "sock.h"

struct hello peer_hello(void)
{
    return (struct hello){.magic = HELLO_MAGIC,
                          .version = HELLO_VERSION,
                          .kind = HELLO_CLIENT,
                          .api_hash = WIRE_API_HASH,
                          .priority = HELLO_PRIORITY_UNSET,
                          .program = "peer"};
}

bool peer_connect(struct peer *peer, const char *path)
{
    *peer = (struct peer){.socket = -1, .fds = {-1, -1, -1}};
    return !sock_connect(path, &peer->socket);
}

static void close_fds(struct peer *peer)
{
    for (unsigned i = 0; i < ATTACH_FDS; i++)
        fd_close(&peer->fds[i]);
}

bool peer_receive_offer(struct peer *peer)
{
    size_t count = 0;

    close_fds(peer);
    ssize_t size = sock_recv(peer->socket, &peer->offer, sizeof(peer->offer), peer->fds, ATTACH_FDS,
                             &count, TIMEOUT_MS);
    return size == (ssize_t)sizeof(peer->offer) && count == ATTACH_FDS;
}

bool peer_answer(struct peer *peer, uint32_t verdict)
{
    const struct attach_reply reply = {ATTACH_REPLY_MAGIC, verdict};

    return !sock_send(peer->socket, &reply, sizeof(reply), NULL, 0);
}

/* From an offer to a channel. */
static bool settle(struct peer *peer)
{
    void *gpu = NULL;

    if (!peer_receive_offer(peer) || !peer_answer(peer, ATTACH_OK))
        return false;
    if (shm_map(peer->fds[ATTACH_FD_GPU], peer->offer.gpu_size, NULL, 0, &gpu))
        return false;
    peer->gpu = gpu;
    return !channel_open(&peer->channel, peer->fds[ATTACH_FD_CONTROL], peer->offer.region_size,
                         peer->offer.ring_bytes, peer->socket);
}

bool peer_attach_as(struct peer *peer, const char *path, const struct hello *hello)
{
    return peer_connect(peer, path) && !sock_send(peer->socket, hello, sizeof(*hello), NULL, 0) &&
           settle(peer);
}

bool peer_attach(struct peer *peer, const char *path)
{
    struct hello hello = peer_hello();

    return peer_attach_as(peer, path, &hello);
}

bool peer_adopt(struct peer *peer, int socket)
{
    *peer = (struct peer){.socket = socket, .fds = {-1, -1, -1}};
    return settle(peer);
}

void peer_leave(struct peer *peer)
{
    channel_close(&peer->channel);
    shm_unmap(peer->gpu, peer->offer.gpu_size);
    close_fds(peer);
    fd_close(&peer->socket);
}

bool peer_is_cut_off(struct peer *peer)
{
    for (int waited = 0; waited < TIMEOUT_MS; waited++) {
        if (sock_hung_up(peer->socket))
            return true;
        usleep(1000);
    }
    return false;
}

uint64_t peer_handle(struct peer *peer, enum wire_handle kind)
{
    return (uint64_t)kind << 48 | 1ull << 24 | peer->next_handle++;
}

bool peer_send_raw(struct peer *peer, uint32_t kind, const void *payload, uint32_t size)
{
    channel_lock(&peer->channel);
    struct ring_message *message = channel_reserve(&peer->channel, size);
    if (message) {
        message->kind = kind;
        memcpy(message + 1, payload, size - sizeof(*message));
        channel_commit(&peer->channel);
    }
    channel_unlock(&peer->channel);
    return message;
}

bool peer_launch(struct peer *peer, const struct wire_cuLaunchKernelEx *in)
{
    void *place;

    if (wire_cuLaunchKernelEx(&peer->channel, in, &place) != CUDA_SUCCESS)
        return false;
    memcpy(place, in->params, in->params_size);
    channel_commit(&peer->channel);
    return true;
}

bool peer_fence(struct peer *peer, uint64_t stream, uint32_t seq)
{
    const struct wire_fnFence in = {.hStream = stream, .seq = seq};

    channel_lock(&peer->channel);
    CUresult result = wire_fnFence(&peer->channel, &in);
    channel_unlock(&peer->channel);
    return result == CUDA_SUCCESS;
}

bool peer_wait_fence(struct peer *peer, uint32_t word, uint32_t seq)
{
    const uint32_t *fences = (const uint32_t *)(peer->gpu + GPU_REGION_FENCE_OFFSET);
    uint64_t deadline = clock_ns() + TIMEOUT_MS * NS_PER_MS;

    while ((int32_t)(__atomic_load_n(&fences[word], __ATOMIC_ACQUIRE) - seq) < 0) {
        if (clock_ns() > deadline || !channel_alive(&peer->channel))
            return false;
        usleep(50);
    }
    return true;
}

void *peer_staging(struct peer *peer, uint64_t offset)
{
    return peer->gpu + GPU_REGION_STAGING_OFFSET + offset;
}
