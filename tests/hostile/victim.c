/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses CUDA and ignores every error: test_client.c runs it against servers that
 * answer anything. The library it loads must not crash, end or print.
 *
 *     victim LIBRARY
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define BYTES 100000u
#define ROUNDS 3

static void *library;

/* The arguments are the caller's to know. */
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
typedef int call_type();

static int none(void)
{
    return -1;
}

static call_type *find(const char *name)
{
    void *call = dlsym(library, name);

    return call ? (call_type *)call : (call_type *)none;
}

#define CALL(name, ...) find(#name)(__VA_ARGS__)

static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                           ".visible .entry empty(.param .u64 p)\n{\nret;\n}\n";

static void ask_device(int device)
{
    char name[64] = "", bus[32] = "";
    size_t bytes = 0;
    int value = 0;

    CALL(cuDeviceGetName, name, (int)sizeof(name), device);
    CALL(cuDeviceGetPCIBusId, bus, (int)sizeof(bus), device);
    CALL(cuDeviceTotalMem_v2, &bytes, device);
    for (int attribute = 1; attribute < 150; attribute++)
        CALL(cuDeviceGetAttribute, &value, attribute, device);
    CALL(cuMemGetInfo_v2, &bytes, &bytes);
    for (int limit = 0; limit < 8; limit++)
        CALL(cuCtxGetLimit, &bytes, limit);
}

static void launch(void *stream)
{
    void *module = NULL, *function = NULL;
    uint64_t parameter[64] = {0}, global = 0;
    void *values[64];
    size_t offset, size = 0;
    int blocks = 0;

    for (int i = 0; i < 64; i++)
        values[i] = parameter;
    CALL(cuModuleLoadData, &module, text);
    CALL(cuModuleGetGlobal_v2, &global, &size, module, "variable");
    CALL(cuModuleGetFunction, &function, module, "empty");
    if (function) {
        for (size_t i = 0; i < 4; i++)
            CALL(cuFuncGetParamInfo, function, i, &offset, &size);
        CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, 64, (size_t)0);
        CALL(cuLaunchKernel, function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, values, NULL);
    }
    CALL(cuModuleUnload, module);
}

static void copy(void *stream)
{
    static char bytes[BYTES];
    uint64_t device = 0, later = 0;
    void *host = NULL;

    CALL(cuMemAlloc_v2, &device, (size_t)BYTES);
    CALL(cuMemAllocAsync, &later, (size_t)BYTES, stream);
    CALL(cuMemcpyHtoD_v2, device, bytes, (size_t)BYTES);
    CALL(cuMemcpyDtoH_v2, bytes, device, (size_t)BYTES);
    CALL(cuMemsetD8Async, device, 1, (size_t)BYTES, stream);
    if (CALL(cuMemHostAlloc, &host, (size_t)BYTES, 0u) == 0 && host)
        memset(host, 1, BYTES);
    CALL(cuMemcpyDtoHAsync_v2, host, device, (size_t)BYTES, stream);
    CALL(cuMemFreeHost, host);
    CALL(cuMemFreeAsync, later, stream);
    CALL(cuMemFree_v2, device);
}

static void map(int device)
{
    const int properties[16] = {1, 0, 1, device};
    uint64_t handle = 0, address = 0;
    size_t granularity = 0;
    int fd = -1;

    CALL(cuMemGetAllocationGranularity, &granularity, properties, 0);
    CALL(cuMemAddressReserve, &address, (size_t)4 << 20, (size_t)0, (uint64_t)0, 0ull);
    CALL(cuMemCreate, &handle, (size_t)4 << 20, properties, 0ull);
    CALL(cuMemMap, address, (size_t)4 << 20, (size_t)0, handle, 0ull);
    CALL(cuMemExportToShareableHandle, &fd, handle, 1, 0ull);
    CALL(cuMemUnmap, address, (size_t)4 << 20);
    CALL(cuMemRelease, handle);
    CALL(cuMemAddressFree, address, (size_t)4 << 20);
}

static void synchronize(void *stream)
{
    void *first = NULL, *second = NULL;
    float ms = 0;

    CALL(cuEventCreate, &first, 0u);
    CALL(cuEventCreate, &second, 0u);
    CALL(cuEventRecord, first, stream);
    CALL(cuEventRecord, second, stream);
    CALL(cuEventSynchronize, second);
    CALL(cuEventElapsedTime, &ms, first, second);
    CALL(cuEventDestroy_v2, first);
    CALL(cuEventDestroy_v2, second);
    CALL(cuStreamSynchronize, stream);
    CALL(cuCtxSynchronize);
}

int main(int argc, char **argv)
{
    void *context = NULL, *stream = NULL;
    int count = 0;

    library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library)
        return 2;
    CALL(cuInit, 0u);
    CALL(cuDeviceGetCount, &count);
    CALL(cuDevicePrimaryCtxRetain, &context, 0);
    CALL(cuCtxSetCurrent, context);
    for (int round = 0; round < ROUNDS; round++) {
        ask_device(0);
        CALL(cuStreamCreate, &stream, 1u);
        launch(stream);
        copy(stream);
        map(0);
        synchronize(stream);
        CALL(cuStreamDestroy_v2, stream);
    }
    CALL(cuDevicePrimaryCtxRelease_v2, 0);
    return 0;
}
