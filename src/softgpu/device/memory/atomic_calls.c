/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The atomics of virtual devices on memory of the host and of each other. They can do all that they
 * do on their own memory, for all of it is one process's, and the CPU's atomics work on it.
 */
#include "cuda_atomics.h"
#include "soft.h"
#include "soft_device.h"

#define CAN(name) CU_ATOMIC_CAPABILITY_##name
#define OF_BOTH_SIGNS (CAN(SIGNED) | CAN(UNSIGNED))
#define OF_BOTH_SIZES (CAN(SCALAR_32) | CAN(SCALAR_64))
#define INTEGERS (OF_BOTH_SIGNS | OF_BOTH_SIZES | CAN(REDUCTION))
#define EXCHANGES (OF_BOTH_SIGNS | OF_BOTH_SIZES | CAN(SCALAR_128))
#define FLOATS (OF_BOTH_SIZES | CAN(REDUCTION))

/* As the decoder of atom and red takes them (decode_atomic()). */
static const unsigned atomics[CU_ATOMIC_OPERATION_MAX] = {
    [CU_ATOMIC_OPERATION_INTEGER_ADD] = INTEGERS,
    [CU_ATOMIC_OPERATION_INTEGER_MIN] = INTEGERS,
    [CU_ATOMIC_OPERATION_INTEGER_MAX] = INTEGERS,
    [CU_ATOMIC_OPERATION_INTEGER_INCREMENT] = CAN(UNSIGNED) | CAN(SCALAR_32) | CAN(REDUCTION),
    [CU_ATOMIC_OPERATION_INTEGER_DECREMENT] = CAN(UNSIGNED) | CAN(SCALAR_32) | CAN(REDUCTION),
    [CU_ATOMIC_OPERATION_AND] = INTEGERS,
    [CU_ATOMIC_OPERATION_OR] = INTEGERS,
    [CU_ATOMIC_OPERATION_XOR] = INTEGERS,
    [CU_ATOMIC_OPERATION_EXCHANGE] = EXCHANGES,
    [CU_ATOMIC_OPERATION_CAS] = EXCHANGES,
    [CU_ATOMIC_OPERATION_FLOAT_ADD] = FLOATS | CAN(VECTOR_32x4),
    [CU_ATOMIC_OPERATION_FLOAT_MIN] = FLOATS,
    [CU_ATOMIC_OPERATION_FLOAT_MAX] = FLOATS,
};

CUresult soft_cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
                                                const CUatomicOperation *operations,
                                                unsigned int count, CUdevice dev)
{
    if (!device_get(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    return cuda_atomics_tell(atomics, operations, count, capabilities);
}

CUresult soft_cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
                                               const CUatomicOperation *operations,
                                               unsigned int count, CUdevice srcDevice,
                                               CUdevice dstDevice)
{
    if (!device_get(srcDevice) || !device_get(dstDevice) || srcDevice == dstDevice)
        return CUDA_ERROR_INVALID_DEVICE;
    return cuda_atomics_tell(atomics, operations, count, capabilities);
}
