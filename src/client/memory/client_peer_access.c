/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers: devices that reach each other's memory. A program enables that for a pair of contexts. The
 * client tells the server once for a pair of devices, also before a copy from one to the other.
 * From then on the client's memory of the one is mapped for the other as well.
 */
#include "client_peer_access.h"

#include <stdatomic.h>
#include <string.h>

#include "cleanup.h"
#include "client_memory.h"
#include "client_prototypes.h"
#include "wire_calls.h"

/* By ordinal, atomic; bit p: the server knows that the device reaches this client's memory of the
 * device with that part of the window. */
static _Atomic uint32_t reached_by[ATTACH_DEVICES_MAX];

void peer_init(void)
{
    memset(reached_by, 0, sizeof(reached_by));
}

static bool can_reach(const struct device *from, const struct device *to)
{
    return from != to && from->record->peers >> to->part & 1;
}

CUresult client_cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    const struct device *device = device_lookup(dev), *peer = device_lookup(peerDev);

    if (!device || !peer)
        return CUDA_ERROR_INVALID_DEVICE;
    *canAccessPeer = can_reach(device, peer);
    return CUDA_SUCCESS;
}

/* Arrays are not mapped for other devices, and ranks are not known here: both are 0. */
static uint32_t peers_with(const struct device *device, CUdevice_P2PAttribute attrib)
{
    switch (attrib) {
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
        return device->record->peers;
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        return device->record->atomic_peers;
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
        return device->record->partial_atomic_peers;
    default:
        return 0;
    }
}

CUresult client_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib,
                                        CUdevice srcDevice, CUdevice dstDevice)
{
    const struct device *device = device_lookup(srcDevice), *peer = device_lookup(dstDevice);

    if (attrib < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
        attrib > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device || !peer || device == peer)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = (int)(peers_with(device, attrib) >> peer->part & 1);
    return CUDA_SUCCESS;
}

static bool is_reached(const struct device *from, const struct device *to)
{
    return atomic_load_explicit(&reached_by[from->ordinal], memory_order_acquire) >> to->part & 1;
}

static CUresult tell_server(const struct device *from, const struct device *to)
{
    struct wire_cuCtxEnablePeerAccess in = {.device = from->index, .peer = to->index};

    return wire_cuCtxEnablePeerAccess(&client->channel, &in);
}

CUresult peer_reach(struct device *from, const struct device *to)
{
    uint32_t bit = 1u << to->part;
    CUresult result;

    if (!can_reach(from, to))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (is_reached(from, to))
        return CUDA_SUCCESS;
    result = tell_server(from, to);
    if (result == CUDA_SUCCESS)
        atomic_fetch_or_explicit(&reached_by[from->ordinal], bit, memory_order_release);
    return result;
}

CUresult peer_replay(void)
{
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; i < client->device_count; i++)
        for (int j = 0; j < client->device_count && result == CUDA_SUCCESS; j++)
            if (is_reached(&client->devices[i], &client->devices[j]))
                result = tell_server(&client->devices[i], &client->devices[j]);
    return result;
}

bool peer_all_reach(void)
{
    for (int i = 0; i < client->device_count; i++)
        for (int j = 0; j < client->device_count; j++)
            if (i != j && !can_reach(&client->devices[i], &client->devices[j]))
                return false;
    return client->device_count > 0;
}

bool peer_let_all_reach(const struct device *home)
{
    for (int i = 0; i < client->device_count; i++)
        if (&client->devices[i] != home && peer_reach(&client->devices[i], home) != CUDA_SUCCESS)
            return false;
    return true;
}

/* Where the devices do not reach each other, the driver copies through host memory. */
void peer_prepare_copy(struct device *device, uint64_t address)
{
    const struct device *home = memory_device_of(address);

    if (home && home != device)
        peer_reach(device, home);
}

/* ---- pairs of contexts ---- */

/* Neither has been reset since. */
static bool is_valid(const struct peer_access *access, const struct context *context,
                     const struct context *peer)
{
    return access->peer == peer->handle && access->peer_epoch == peer->epoch &&
           access->epoch == context->epoch;
}

static struct peer_access *find_access_locked(struct context *context, const struct context *peer)
{
    for (int i = 0; i < ATTACH_DEVICES_MAX; i++)
        if (is_valid(&context->peers[i], context, peer))
            return &context->peers[i];
    return NULL;
}

/* One that names no context, or one that is gone. */
static struct peer_access *free_access_locked(struct context *context)
{
    for (int i = 0; i < ATTACH_DEVICES_MAX; i++) {
        struct peer_access *access = &context->peers[i];
        const struct context *peer = access->peer ? context_lookup(access->peer) : NULL;

        if (!peer || !is_valid(access, context, peer))
            return access;
    }
    return NULL;
}

static CUresult find_both(CUcontext handle, struct context **ret_context, struct context **ret_peer)
{
    CUresult result = context_enter(ret_context);

    if (result != CUDA_SUCCESS)
        return result;
    *ret_peer = context_lookup(handle);
    return *ret_peer && context_active(*ret_peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult record_access(struct context *context, const struct context *peer)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    struct peer_access *access = free_access_locked(context);

    if (find_access_locked(context, peer))
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    if (!access)
        return CUDA_ERROR_TOO_MANY_PEERS;
    *access = (struct peer_access){peer->handle, peer->epoch, context->epoch};
    return CUDA_SUCCESS;
}

CUresult client_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned Flags)
{
    struct context *context, *peer;
    CUresult result = find_both(peerContext, &context, &peer);

    if (Flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = peer_reach(context->device, peer->device);
    return result == CUDA_SUCCESS ? record_access(context, peer) : result;
}

CUresult client_cuCtxDisablePeerAccess(CUcontext peerContext)
{
    struct context *context, *peer;
    struct peer_access *access;
    CUresult result = find_both(peerContext, &context, &peer);

    if (result != CUDA_SUCCESS)
        return result;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    access = find_access_locked(context, peer);
    if (!access)
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    *access = (struct peer_access){0};
    return CUDA_SUCCESS;
}
