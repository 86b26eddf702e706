// SPDX-License-Identifier: Apache-2.0
// What the runtime and the driver tell of an address, for every kind of memory, with a current
// context, in a thread that has none, and after the device has been reset.
#include <cuda.h>
#include <thread>

#include "check.cuh"

#define DRIVER(call) EXPECT(cudaSuccess, (cudaError_t)(call))

__device__ int device_variable[1000];
__constant__ int constant_variable[100];
__managed__ int managed_variable[100];

__global__ void use_variables()
{
    device_variable[0] = constant_variable[0] + managed_variable[0];
}

struct Expected {
    cudaMemoryType type;
    bool on_device, on_host; // whether either reaches it by this very address
};

static const Expected PLAIN = {cudaMemoryTypeUnregistered, false, true};
static const Expected DEVICE = {cudaMemoryTypeDevice, true, false};
static const Expected HOST = {cudaMemoryTypeHost, true, true};
static const Expected MANAGED = {cudaMemoryTypeManaged, true, true};

static cudaPointerAttributes attributes_of(const void *pointer)
{
    cudaPointerAttributes attributes;

    memset(&attributes, 0x55, sizeof(attributes));
    EXPECT(cudaSuccess, cudaPointerGetAttributes(&attributes, pointer));
    return attributes;
}

// Where there is no context to see the memory from, the device pointer may be missing.
static void look_without_a_context(const void *pointer, Expected expected)
{
    cudaPointerAttributes attributes = attributes_of(pointer);
    bool is_known = expected.type != cudaMemoryTypeUnregistered;

    IS_TRUE(attributes.type == expected.type);
    IS_TRUE(attributes.device == (is_known ? 0 : cudaInvalidDeviceId));
    IS_TRUE(!attributes.devicePointer || attributes.devicePointer == pointer);
    EXPECT(cudaSuccess, cudaGetLastError());
}

static void look(const void *pointer, Expected expected)
{
    cudaPointerAttributes attributes = attributes_of(pointer);

    look_without_a_context(pointer, expected);
    IS_TRUE(attributes.devicePointer == (expected.on_device ? pointer : nullptr));
    IS_TRUE(attributes.hostPointer == (expected.on_host ? pointer : nullptr));
    EXPECT(cudaSuccess, cudaGetLastError());
}

template <typename T> static T ask(CUpointer_attribute attribute, const void *pointer)
{
    T value = {};

    DRIVER(cuPointerGetAttribute(&value, attribute, (CUdeviceptr)pointer));
    return value;
}

static CUcontext current_context()
{
    CUcontext context;

    DRIVER(cuCtxGetCurrent(&context));
    return context;
}

// What the driver says of memory that was allocated as [start, start + size).
static void look_closely(const char *start, size_t size, CUmemorytype type, bool managed,
                         CUcontext context)
{
    const char *inside = start + 40;

    IS_TRUE(ask<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, inside) == context);
    // NVIDIA's driver answers SYNC_MEMOPS now with 0, now with 1.
    IS_TRUE(ask<unsigned>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, inside) <= 1);
    IS_TRUE(ask<const char *>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, inside) <= start);
    IS_TRUE(ask<size_t>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, inside) >= size);
    IS_TRUE(ask<CUmemorytype>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside) == type);
    IS_TRUE(ask<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, inside) == managed);
    IS_TRUE(ask<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside) == 0);
    IS_TRUE(ask<const char *>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside) <= start);
    IS_TRUE(ask<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside) >= size);
    IS_TRUE(ask<unsigned>(CU_POINTER_ATTRIBUTE_MAPPED, inside) == 1);
    IS_TRUE(ask<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, inside) ==
            ask<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, start));
}

static void memory_of_the_program()
{
    void *plain = malloc(4096);
    int on_stack;

    look(plain, PLAIN);
    look(&on_stack, PLAIN);
    free(plain);
}

static void device_memory()
{
    char *memory;

    MUST(cudaMalloc(&memory, 100000));
    look(memory, DEVICE);
    look(memory + 99999, DEVICE);
    look(memory + 100000, {cudaMemoryTypeUnregistered, false, true});
    look_closely(memory, 100000, CU_MEMORYTYPE_DEVICE, false, current_context());
    IS_TRUE(ask<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory) == NULL);
    IS_TRUE(ask<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, memory) == 3);
    IS_TRUE(ask<char *>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory + 8) == memory);
    IS_TRUE(ask<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, memory) == 100000);
    MUST(cudaFree(memory));
}

static void variables()
{
    char *variable, *constant;

    MUST(cudaGetSymbolAddress((void **)&variable, device_variable));
    MUST(cudaGetSymbolAddress((void **)&constant, constant_variable));
    look(variable, DEVICE);
    look(variable + 3999, DEVICE);
    look(constant + 200, DEVICE);
    look(managed_variable, MANAGED);
    IS_TRUE(ask<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, managed_variable) == 1);
    IS_TRUE(ask<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, variable) == 0);
    IS_TRUE(ask<char *>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, variable + 8) == variable + 8);
    IS_TRUE(ask<char *>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, variable + 8) == variable);
    IS_TRUE(ask<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, constant) == sizeof(constant_variable));
    IS_TRUE(ask<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, variable) == current_context());
    IS_TRUE(ask<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, managed_variable) == NULL);
}

static void managed_memory()
{
    char *memory;

    MUST(cudaMallocManaged(&memory, 100000));
    look(memory + 8, MANAGED);
    look_closely(memory, 100000, CU_MEMORYTYPE_DEVICE, true, current_context());
    MUST(cudaFree(memory));
}

static void pinned_memory()
{
    char *memory;

    MUST(cudaMallocHost(&memory, 100000));
    look(memory + 8, HOST);
    look_closely(memory, 100000, CU_MEMORYTYPE_HOST, false, current_context());
    MUST(cudaFreeHost(memory));
    MUST(cudaHostAlloc(&memory, 4096, cudaHostAllocPortable | cudaHostAllocWriteCombined));
    look(memory, HOST);
    MUST(cudaFreeHost(memory));
}

// The device may see it elsewhere.
static void registered_memory()
{
    char *pages = static_cast<char *>(aligned_alloc(4096, 65536)), *device;

    memset(pages, 1, 65536);
    MUST(cudaHostRegister(pages, 65536, cudaHostRegisterMapped));
    MUST(cudaHostGetDevicePointer((void **)&device, pages, 0));
    cudaPointerAttributes attributes = attributes_of(pages + 8);
    IS_TRUE(attributes.type == cudaMemoryTypeHost && attributes.device == 0);
    IS_TRUE(attributes.hostPointer == pages + 8 && attributes.devicePointer == device + 8);
    look_closely(pages, 65536, CU_MEMORYTYPE_HOST, false, current_context());
    MUST(cudaHostUnregister(pages));
    look(pages, PLAIN);
    MUST(cudaHostRegister(pages, 8192, cudaHostRegisterReadOnly));
    IS_TRUE(ask<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, pages) == 1);
    MUST(cudaHostUnregister(pages));
    free(pages);
}

static void memory_of_a_pool()
{
    cudaMemPoolProps properties = {};
    cudaMemPool_t pool;
    char *memory;

    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    MUST(cudaMemPoolCreate(&pool, &properties));
    MUST(cudaMallocFromPoolAsync(&memory, 100000, pool, 0));
    look(memory + 8, DEVICE);
    look_closely(memory, 100000, CU_MEMORYTYPE_DEVICE, false, NULL);
    IS_TRUE(ask<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory) == (CUmemoryPool)pool);
    IS_TRUE(ask<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, memory) == 0);
    MUST(cudaFreeAsync(memory, 0));
    MUST(cudaStreamSynchronize(0));
    look(memory, PLAIN);
    MUST(cudaMemPoolDestroy(pool));
}

static void mapped_memory()
{
    CUmemAllocationProp properties = {};
    CUmemAccessDesc access = {};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    size_t unit;

    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DRIVER(cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    DRIVER(cuMemAddressReserve(&address, 2 * unit, 0, 0, 0));
    DRIVER(cuMemCreate(&handle, unit, &properties, 0));
    DRIVER(cuMemMap(address + unit, unit, 0, handle, 0));
    look((const void *)address, PLAIN);
    look((const void *)(address + unit), {cudaMemoryTypeDevice, false, false});
    DRIVER(cuMemSetAccess(address + unit, unit, &access, 1));
    const char *memory = (const char *)(address + unit);
    look(memory + 8, DEVICE);
    look_closely(memory, unit, CU_MEMORYTYPE_DEVICE, false, NULL);
    IS_TRUE(ask<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory) == address);
    IS_TRUE(ask<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, memory) == 2 * unit);
    IS_TRUE(ask<const char *>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, memory + 8) == memory);
    IS_TRUE(ask<size_t>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, memory) == unit);
    IS_TRUE(ask<unsigned long long>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, memory) ==
            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    DRIVER(cuMemUnmap(address + unit, unit));
    DRIVER(cuMemRelease(handle));
    DRIVER(cuMemAddressFree(address, 2 * unit));
}

// The driver refuses one question about foreign memory, and answers several with zeroes.
static void foreign_memory_to_the_driver()
{
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
    CUcontext context = (CUcontext)1;
    CUmemorytype type = CU_MEMORYTYPE_HOST;
    CUmemoryPool pool = (CUmemoryPool)1;
    int ordinal = 0, mine;
    void *values[] = {&context, &type, &ordinal, &pool};

    EXPECT(cudaErrorInvalidValue,
           (cudaError_t)cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                              (CUdeviceptr)&mine));
    DRIVER(cuPointerGetAttributes(4, attributes, values, (CUdeviceptr)&mine));
    IS_TRUE(!context && !type && !pool && ordinal == CU_DEVICE_INVALID);
    attributes[1] = CU_POINTER_ATTRIBUTE_P2P_TOKENS; // only by itself
    EXPECT(cudaErrorInvalidValue,
           (cudaError_t)cuPointerGetAttributes(4, attributes, values, (CUdeviceptr)&mine));
    attributes[1] = (CUpointer_attribute)99;
    EXPECT(cudaErrorInvalidValue,
           (cudaError_t)cuPointerGetAttributes(4, attributes, values, (CUdeviceptr)&mine));
}

// As PyTorch's thread that pins what a DataLoader has read.
static void thread_without_a_context()
{
    char *device, *pinned;

    MUST(cudaMalloc(&device, 4096));
    MUST(cudaMallocHost(&pinned, 4096));
    std::thread([&] {
        CUcontext context = NULL;
        int plain;

        look_without_a_context(&plain, PLAIN);
        look_without_a_context(pinned, HOST);
        look_without_a_context(device, DEVICE);
        IS_TRUE(ask<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, device) != NULL);
        DRIVER(cuCtxGetCurrent(&context));
        IS_TRUE(context == NULL);
    }).join();
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(device));
}

// A managed variable stays, and any other one is gone until its library is used again.
static void after_a_reset()
{
    int plain, *variable;

    MUST(cudaGetSymbolAddress((void **)&variable, device_variable));
    EXPECT(cudaSuccess, cudaDeviceReset());
    look_without_a_context(&plain, PLAIN);
    // Until CUDA 12 it is in a module, which ends with its context.
    look_without_a_context(managed_variable, CUDART_VERSION < 12000 ? PLAIN : MANAGED);
    look_without_a_context(variable, PLAIN);
    std::thread([&] { look_without_a_context(&plain, PLAIN); }).join();
    MUST(cudaGetSymbolAddress((void **)&variable, device_variable));
    look(variable, DEVICE);
}

int main()
{
    MUST(cudaFree(0));
    use_variables<<<1, 1>>>();
    RUN(memory_of_the_program);
    RUN(device_memory);
    RUN(variables);
    RUN(managed_memory);
    RUN(pinned_memory);
    RUN(registered_memory);
    RUN(memory_of_a_pool);
    RUN(mapped_memory);
    RUN(foreign_memory_to_the_driver);
    RUN(thread_without_a_context);
    RUN(after_a_reset);
    return check_close();
}
