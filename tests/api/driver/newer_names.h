/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CUDA 13.1 to 13.5 add to the names of 13.0, after NVIDIA's cuda-python, which binds them
 * all. It is as a library exports it, as cuGetProcAddress knows it, and the version. CUDA 13.5
 * itself adds none.
 */
#pragma once

/* Names that 13.0 does not know. */
#define NEWER_NAMES(NAME)                             \
    NAME(cuGraphNodeGetContainingGraph, 13010)        \
    NAME(cuGraphNodeGetLocalId, 13010)                \
    NAME(cuGraphNodeGetToolsId, 13010)                \
    NAME(cuGraphGetId, 13010)                         \
    NAME(cuGraphExecGetId, 13010)                     \
    NAME(cuDevSmResourceSplit, 13010)                 \
    NAME(cuStreamGetDevResource, 13010)               \
    NAME(cuKernelGetParamCount, 13020)                \
    NAME(cuFuncGetParamCount, 13020)                  \
    NAME(cuMemcpyWithAttributesAsync, 13020)          \
    NAME(cuMemcpy3DWithAttributesAsync, 13020)        \
    NAME(cuStreamBeginCaptureToCig, 13020)            \
    NAME(cuStreamEndCaptureToCig, 13020)              \
    NAME(cuGraphNodeGetParams, 13020)                 \
    NAME(cuCoredumpRegisterStartCallback, 13020)      \
    NAME(cuCoredumpRegisterCompleteCallback, 13020)   \
    NAME(cuCoredumpDeregisterStartCallback, 13020)    \
    NAME(cuCoredumpDeregisterCompleteCallback, 13020) \
    NAME(cuLogicalEndpointIdReserve, 13030)           \
    NAME(cuLogicalEndpointIdRelease, 13030)           \
    NAME(cuLogicalEndpointCreate, 13030)              \
    NAME(cuLogicalEndpointAddDevice, 13030)           \
    NAME(cuLogicalEndpointDestroy, 13030)             \
    NAME(cuLogicalEndpointBindAddr, 13030)            \
    NAME(cuLogicalEndpointBindMem, 13030)             \
    NAME(cuLogicalEndpointUnbind, 13030)              \
    NAME(cuLogicalEndpointExport, 13030)              \
    NAME(cuLogicalEndpointImport, 13030)              \
    NAME(cuLogicalEndpointGetLimits, 13030)           \
    NAME(cuLogicalEndpointQuery, 13030)               \
    NAME(cuStreamBeginRecaptureToGraph, 13030)        \
    NAME(cuDeviceGetFabricClusterUuid, 13040)         \
    NAME(cuDeviceGetCliqueCount, 13040)               \
    NAME(cuDeviceGetCliqueInfo, 13040)                \
    NAME(cuMemGetLocationInfo, 13040)                 \
    NAME(cuCheckpointOperationComplete, 13040)

/* Newer forms of names that 13.0 knows. */
#define NEWER_FORMS(FORM)                                    \
    FORM(cuMulticastBindMem_v2, cuMulticastBindMem, 13010)   \
    FORM(cuMulticastBindAddr_v2, cuMulticastBindAddr, 13010) \
    FORM(cuLaunchHostFunc_v2, cuLaunchHostFunc, 13020)       \
    FORM(cuGraphAddNode_v3, cuGraphAddNode, 13040)           \
    FORM(cuGraphNodeSetParams_v2, cuGraphNodeSetParams, 13040)
