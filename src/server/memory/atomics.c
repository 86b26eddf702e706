/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's answers about atomic operations of devices on host memory and on each other's
 * memory. */
#include "memory_state.h"
#include "server_dispatch.h"

/* Asks about all operations at once, so that the client's list needs no bound. */
static void ask_for_all(CUatomicOperation operations[CU_ATOMIC_OPERATION_MAX])
{
    for (unsigned i = 0; i < CU_ATOMIC_OPERATION_MAX; i++)
        operations[i] = (CUatomicOperation)i;
}

CUresult serve_cuDeviceGetHostAtomicCapabilities(
    struct session *session, const struct wire_cuDeviceGetHostAtomicCapabilities *in,
    struct wire_cuDeviceGetHostAtomicCapabilities_reply *ret_out)
{
    const struct device *device =
        session_find_device(session, "cuDeviceGetHostAtomicCapabilities", in->device);
    CUatomicOperation operations[CU_ATOMIC_OPERATION_MAX];

    _Static_assert(sizeof(ret_out->capabilities) == sizeof(operations), "one for each operation");
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!driver.cuDeviceGetHostAtomicCapabilities)
        return CUDA_ERROR_NOT_SUPPORTED;
    ask_for_all(operations);
    return driver.cuDeviceGetHostAtomicCapabilities(ret_out->capabilities, operations,
                                                    CU_ATOMIC_OPERATION_MAX, device->ordinal);
}

CUresult
serve_cuDeviceGetP2PAtomicCapabilities(struct session *session,
                                       const struct wire_cuDeviceGetP2PAtomicCapabilities *in,
                                       struct wire_cuDeviceGetP2PAtomicCapabilities_reply *ret_out)
{
    const char *call = "cuDeviceGetP2PAtomicCapabilities";
    const struct device *device = session_find_device(session, call, in->device);
    const struct device *peer = session_find_device(session, call, in->peer);
    CUatomicOperation operations[CU_ATOMIC_OPERATION_MAX];

    _Static_assert(sizeof(ret_out->capabilities) == sizeof(operations), "one for each operation");
    if (!device || !peer || device == peer)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!driver.cuDeviceGetP2PAtomicCapabilities)
        return CUDA_ERROR_NOT_SUPPORTED;
    ask_for_all(operations);
    return driver.cuDeviceGetP2PAtomicCapabilities(
        ret_out->capabilities, operations, CU_ATOMIC_OPERATION_MAX, device->ordinal, peer->ordinal);
}
