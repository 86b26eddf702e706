/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be asked before anything is set up, and what cannot: cuInit, versions, error names,
 * devices and their attributes, and entry points by name.
 */
#include "check.h"

#include <stdio.h>
#include <string.h>

static CUdevice device;

static void before_init(void)
{
    CUdevice unused;
    CUcontext context;
    int version = 0, count;

    EXPECT(CUDA_SUCCESS, cuDriverGetVersion(&version));
    IS_TRUE(version >= 13000);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDriverGetVersion(NULL));
    EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGet(&unused, 0));
    EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&context));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuInit(1));
}

static void error_names(void)
{
    const char *text = NULL;

    EXPECT(CUDA_SUCCESS, cuGetErrorName(CUDA_SUCCESS, &text));
    IS_TRUE(strcmp(text, "CUDA_SUCCESS") == 0);
    EXPECT(CUDA_SUCCESS, cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    IS_TRUE(strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
    EXPECT(CUDA_SUCCESS, cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
    IS_TRUE(strcmp(text, "invalid argument") == 0);
    EXPECT(CUDA_SUCCESS, cuGetErrorString(CUDA_ERROR_NOT_FOUND, &text));
    IS_TRUE(strcmp(text, "named symbol not found") == 0);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)123456, &text));
    IS_TRUE(text == NULL);
}

static int attribute(CUdevice_attribute which)
{
    int value = -1;

    MUST(cuDeviceGetAttribute(&value, which, device));
    return value;
}

static void devices(void)
{
    CUdevice other;
    CUuuid uuid;
    char name[64] = "", bus[32] = "";
    size_t bytes = 0;
    int count = 0;

    EXPECT(CUDA_SUCCESS, cuDeviceGetCount(&count));
    IS_TRUE(count >= 1);
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&other, count));
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&other, -1));
    EXPECT(CUDA_SUCCESS, cuDeviceGetName(name, sizeof(name), device));
    IS_TRUE(strlen(name) > 0);
    EXPECT(CUDA_SUCCESS, cuDeviceTotalMem_v2(&bytes, device));
    IS_TRUE(bytes >= 64 << 20);
    EXPECT(CUDA_SUCCESS, cuDeviceGetUuid(&uuid, device));
    EXPECT(CUDA_SUCCESS, cuDeviceGetPCIBusId(bus, sizeof(bus), device));
    EXPECT(CUDA_SUCCESS, cuDeviceGetByPCIBusId(&other, bus));
    IS_TRUE(other == device);
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetName(name, sizeof(name), count + 5));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetCount(NULL));
}

static void attributes(void)
{
    int value;

    IS_TRUE(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE) == 32);
    IS_TRUE(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 1024);
    IS_TRUE(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) == 1024);
    IS_TRUE(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z) == 64);
    IS_TRUE(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) == 2147483647);
    IS_TRUE(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) == 65535);
    IS_TRUE(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) >= 1);
    IS_TRUE(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK) >= 48 << 10);
    IS_TRUE(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 7);
    IS_TRUE(attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) == 1);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuDeviceGetAttribute(&value, (CUdevice_attribute)99999, device));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
}

/* Run directly and through Funnel, the program prints the same. */
static void atomics_on_host_memory(void)
{
    const CUatomicOperation asked[] = {CU_ATOMIC_OPERATION_CAS, CU_ATOMIC_OPERATION_INTEGER_ADD,
                                       CU_ATOMIC_OPERATION_FLOAT_ADD, CU_ATOMIC_OPERATION_CAS},
                            none = CU_ATOMIC_OPERATION_MAX + 100;
    unsigned can[5] = {0, 0, 0, 0, 4711};

    EXPECT(CUDA_SUCCESS, cuDeviceGetHostAtomicCapabilities(can, asked, 4, device));
    printf("atomics on host memory: %#x %#x %#x\n", can[0], can[1], can[2]);
    IS_TRUE(can[3] == can[0] && can[4] == 4711);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(NULL, asked, 4, device));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(can, NULL, 4, device));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(can, asked, 0, device));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(can, &none, 1, device));
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetHostAtomicCapabilities(can, asked, 4, 1000));
}

static void entry_points(void)
{
    CUdriverProcAddressQueryResult status;
    CUresult (*get_count)(int *);
    void *function;
    int count = 0;

    EXPECT(CUDA_SUCCESS, cuGetProcAddress_v2("cuDeviceGetCount", &function, 13000, 0, &status));
    IS_TRUE(status == CU_GET_PROC_ADDRESS_SUCCESS);
    get_count = function;
    EXPECT(CUDA_SUCCESS, get_count(&count));
    IS_TRUE(count >= 1);
    EXPECT(CUDA_SUCCESS, cuGetProcAddress_v2("cuNope", &function, 13000, 0, &status));
    IS_TRUE(function == NULL && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT(CUDA_SUCCESS, cuGetProcAddress_v2("cuLibraryLoadData", &function, 11000, 0, &status));
    IS_TRUE(function == NULL && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress_v2("cuInit", &function, 13000, 7, &status));
}

/* Programs of older versions of CUDA ask for the forms of their calls that were current then. */
static void *of_version(const char *name, int version)
{
    CUdriverProcAddressQueryResult status;
    void *function = NULL;

    MUST(cuGetProcAddress_v2(name, &function, version, 0, &status));
    IS_TRUE(status == CU_GET_PROC_ADDRESS_SUCCESS);
    return function;
}

/* The form of CUDA 11 gives no status, and takes no place for one. */
static void entry_points_for_cuda_11(void)
{
    CUresult (*get)(const char *, void **, int, cuuint64_t) = of_version("cuGetProcAddress", 11030);
    CUresult (*get_count)(int *) = NULL;
    int count = 0;

    EXPECT(CUDA_SUCCESS, get("cuDeviceGetCount", (void **)&get_count, 11030, 0));
    EXPECT(CUDA_SUCCESS, get_count(&count));
    IS_TRUE(count >= 1);
}

/* The parameters of a kernel node ended with `extra` until CUDA 12: what lies behind is not read.
 */
static void kernel_nodes_of_cuda_11(void)
{
    CUresult (*add)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const void *) =
        of_version("cuGraphAddKernelNode", 11000);
    CUresult (*add_now)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const void *) =
        of_version("cuGraphAddKernelNode", 12000);
    CUDA_KERNEL_NODE_PARAMS_v2 node = {.gridDimX = 1,
                                       .gridDimY = 1,
                                       .gridDimZ = 1,
                                       .blockDimX = 1,
                                       .blockDimY = 1,
                                       .blockDimZ = 1};
    CUgraphNode made;
    CUgraph graph;

    node.func = get_kernel(load_kernels(), "nothing");
    MUST(cuGraphCreate(&graph, 0));
    EXPECT(CUDA_SUCCESS, add_now(&made, graph, NULL, 0, &node));
    memset(&node.kern, 0x5a, sizeof(node.kern));
    memset(&node.ctx, 0x5a, sizeof(node.ctx));
    EXPECT(CUDA_SUCCESS, add(&made, graph, NULL, 0, &node));
    MUST(cuGraphDestroy(graph));
}

static void captures_of_cuda_10(void)
{
    CUresult (*info)(CUstream, CUstreamCaptureStatus *, cuuint64_t *) =
        of_version("cuStreamGetCaptureInfo", 10010);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    cuuint64_t id;

    EXPECT(CUDA_SUCCESS, info(NULL, &status, &id));
    IS_TRUE(status == CU_STREAM_CAPTURE_STATUS_NONE);
}

static void older_forms(void)
{
    check_open();
    entry_points_for_cuda_11();
    kernel_nodes_of_cuda_11();
    captures_of_cuda_10();
}

int main(void)
{
    RUN(before_init);
    RUN(error_names);
    device = check_init();
    RUN(devices);
    RUN(attributes);
    RUN(atomics_on_host_memory);
    RUN(entry_points);
    RUN(older_forms);
    return check_close();
}
