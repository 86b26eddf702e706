/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed variables through the driver. A library has one of each for all contexts, a module has
 * its own, and the host uses them at their addresses.
 */
#include "check.h"

#include <string.h>

#define WORDS 3000

static const char image[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .attribute(.managed) .align 4 .u32 counter = 5;\n"
    ".visible .global .attribute(.managed) .align 4 .u32 beside = 100;\n"
    ".visible .global .attribute(.managed) .align 8 .b8 words[12000] = {1, 0, 0, 0, 2};\n"
    ".visible .global .align 4 .u32 plain = 9;\n"
    ".visible .entry count(.param .u32 by)\n{\n"
    "    .reg .b32 %r<4>;\n"
    "    ld.param.u32 %r1, [by];\n"
    "    ld.global.u32 %r2, [counter];\n"
    "    add.u32 %r3, %r1, %r2;\n"
    "    st.global.u32 [counter], %r3;\n"
    "    ld.global.u32 %r2, [beside];\n"
    "    add.u32 %r3, %r2, 1;\n"
    "    st.global.u32 [beside], %r3;\n"
    "    ret;\n}\n"
    ".visible .entry number(.param .u64 at, .param .u32 n)\n{\n"
    "    .reg .pred %p<2>;\n    .reg .b32 %r<4>;\n    .reg .b64 %rd<4>;\n"
    "    ld.param.u64 %rd1, [at];\n"
    "    ld.param.u32 %r1, [n];\n"
    "    mov.u32 %r2, 0;\n"
    "next:\n"
    "    setp.ge.u32 %p1, %r2, %r1;\n"
    "    @%p1 bra done;\n"
    "    st.u32 [%rd1], %r2;\n"
    "    add.u64 %rd1, %rd1, 4;\n"
    "    add.u32 %r2, %r2, 1;\n"
    "    bra next;\n"
    "done:\n"
    "    ret;\n}\n";

/* What NVIDIA's driver has without a context, or leaves behind one, is not written down. */
static bool is_software(CUdevice device)
{
    char name[100];

    MUST(cuDeviceGetName(name, sizeof(name), device));
    return strstr(name, "Software") != NULL;
}

static uint32_t *managed(CUlibrary library, const char *name, size_t size)
{
    CUdeviceptr address = 0;
    size_t bytes = 0;

    MUST(cuLibraryGetManaged(&address, &bytes, library, name));
    IS_TRUE(bytes == size);
    return (uint32_t *)(uintptr_t)address;
}

static CUlibrary load(void)
{
    CUlibrary library;

    MUST(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    return library;
}

static CUfunction kernel_of(CUlibrary library, const char *name)
{
    CUkernel kernel;

    MUST(cuLibraryGetKernel(&kernel, library, name));
    return (CUfunction)kernel;
}

static void count(CUlibrary library, uint32_t by)
{
    void *parameters[] = {&by};

    launch_one(kernel_of(library, "count"), NULL, parameters);
    MUST(cuCtxSynchronize());
}

static void both_sides_use_them(void)
{
    CUlibrary library = load();
    uint32_t *counter = managed(library, "counter", 4);
    uint32_t *words = managed(library, "words", 4 * WORDS), n = WORDS;
    void *parameters[] = {&words, &n};

    IS_TRUE(*counter == 5 && words[0] == 1 && words[1] == 2 && words[WORDS - 1] == 0);
    count(library, 10);
    IS_TRUE(*counter == 15);
    *counter = 100;
    count(library, 1);
    count(library, 1);
    IS_TRUE(*counter == 102);
    launch_one(kernel_of(library, "number"), NULL, parameters);
    MUST(cuCtxSynchronize());
    for (uint32_t i = 0; i < WORDS; i++)
        IS_TRUE(words[i] == i);
    IS_TRUE(*counter == 102 && managed(library, "counter", 4) == counter);
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(library));
}

static void names_that_are_not_managed(void)
{
    CUlibrary library = load();
    CUdeviceptr address;
    size_t size = 0;

    EXPECT(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&address, NULL, library, "plain"));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&address, NULL, library, "nothing"));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLibraryGetManaged(NULL, NULL, library, "counter"));
    EXPECT(CUDA_SUCCESS, cuLibraryGetManaged(NULL, &size, library, "counter"));
    IS_TRUE(size == 4);
    EXPECT(CUDA_SUCCESS, cuLibraryGetGlobal(&address, &size, library, "plain"));
    IS_TRUE(size == 4 && word_at(address) == 9);
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(library));
}

/* Each load begins with the first values. */
static void loads_are_apart(void)
{
    CUlibrary first = load(), second = load();
    uint32_t *a = managed(first, "counter", 4), *b = managed(second, "counter", 4);

    *a = 50;
    count(first, 1);
    IS_TRUE(*a == 51 && *b == 5 && a != b);
    count(second, 1);
    IS_TRUE(*a == 51 && *b == 6);
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(first));
    count(second, 1);
    IS_TRUE(*b == 7);
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(second));
    second = load();
    IS_TRUE(*managed(second, "counter", 4) == 5);
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(second));
}

static void modules_have_them_too(void)
{
    uint32_t by = 3, *counter;
    void *parameters[] = {&by};
    CUdeviceptr address;
    CUmodule module;
    size_t size;

    MUST(cuModuleLoadData(&module, image));
    MUST(cuModuleGetGlobal_v2(&address, &size, module, "counter"));
    counter = (uint32_t *)(uintptr_t)address;
    IS_TRUE(size == 4 && *counter == 5);
    *counter = 20;
    launch_one(get_kernel(module, "count"), NULL, parameters);
    MUST(cuCtxSynchronize());
    IS_TRUE(*counter == 23);
    EXPECT(CUDA_SUCCESS, cuModuleUnload(module));
}

static void what_the_address_is(void)
{
    CUlibrary library = load();
    uint32_t *words = managed(library, "words", 4 * WORDS);
    CUdeviceptr address = (uintptr_t)words, on_device = 0;
    unsigned is_managed = 0, type = 0;
    void *on_host = NULL;

    EXPECT(CUDA_SUCCESS,
           cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address + 40));
    EXPECT(CUDA_SUCCESS,
           cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 40));
    EXPECT(CUDA_SUCCESS,
           cuPointerGetAttribute(&on_device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address + 40));
    EXPECT(CUDA_SUCCESS,
           cuPointerGetAttribute(&on_host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address + 40));
    IS_TRUE(is_managed == 1 && type == CU_MEMORYTYPE_DEVICE);
    IS_TRUE(on_device == address + 40 && on_host == words + 10);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(address));
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(library));
}

static void copies_and_memsets(void)
{
    CUlibrary library = load();
    uint32_t *words = managed(library, "words", 4 * WORDS), back[4] = {0};
    CUdeviceptr address = (uintptr_t)words, other = make_words(4, 7);

    words[1] = 77;
    MUST(cuMemcpyDtoH_v2(back, address, sizeof(back)));
    IS_TRUE(back[0] == 1 && back[1] == 77 && back[2] == 0);
    back[3] = 33;
    MUST(cuMemcpyHtoD_v2(address, back, sizeof(back)));
    IS_TRUE(words[3] == 33 && words[1] == 77);
    MUST(cuMemcpy(address + 16, other, 16));
    MUST(cuCtxSynchronize());
    IS_TRUE(words[4] == 7 && words[7] == 7 && words[8] == 0);
    words[9] = 1;
    MUST(cuMemsetD32_v2(address, 8, 5));
    MUST(cuCtxSynchronize());
    IS_TRUE(words[0] == 8 && words[4] == 8 && words[5] == 7 && words[9] == 1);
    MUST(cuMemFree_v2(other));
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(library));
}

/* Each is memory of its own, wherever the next one begins. Whether NVIDIA's driver rounds such
 * small ones up is not written down. */
static void copies_end_with_a_variable(void)
{
    CUlibrary library = load();
    uint32_t *counter = managed(library, "counter", 4), *beside = managed(library, "beside", 4);
    CUdeviceptr address = (uintptr_t)counter;
    uint32_t back[2] = {0};
    CUdevice device;

    MUST(cuCtxGetDevice(&device));
    if (is_software(device)) {
        IS_TRUE(beside == counter + 1);
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(back, address, 8));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(address, 1, 2));
    }
    IS_TRUE(*counter == 5 && *beside == 100);
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(library));
}

/* Variables share pages, and the program has not asked for each of them. */
static void what_is_not_asked_for_stays(void)
{
    CUlibrary library = load();
    uint32_t *counter = managed(library, "counter", 4);
    uint32_t *words = managed(library, "words", 4 * WORDS), *beside;

    for (uint32_t i = 0; i < 5; i++) {
        *counter = 10 * i;
        words[0] = words[WORDS - 1] = i;
        count(library, 1);
        IS_TRUE(*counter == 10 * i + 1 && words[0] == i && words[WORDS - 1] == i);
    }
    *counter = 70;
    beside = managed(library, "beside", 4);
    IS_TRUE(*beside == 105 && *counter == 70);
    *beside = 200;
    count(library, 1);
    IS_TRUE(*beside == 201 && *counter == 71);
    *beside = 0;
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(library));
}

/* What is attached to one stream the program may touch while another one works. */
static void a_variable_is_attached(void)
{
    CUlibrary library = load();
    uint32_t *words = managed(library, "words", 4 * WORDS);
    CUdeviceptr address = (uintptr_t)words;
    CUstream stream;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT(CUDA_SUCCESS, cuStreamAttachMemAsync(stream, address, 0, CU_MEM_ATTACH_SINGLE));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuStreamAttachMemAsync(stream, address + 4, 0, CU_MEM_ATTACH_SINGLE));
    EXPECT(CUDA_SUCCESS, cuStreamAttachMemAsync(stream, address, 0, CU_MEM_ATTACH_HOST));
    MUST(cuStreamSynchronize(stream));
    words[100] = 100;
    EXPECT(CUDA_SUCCESS, cuStreamAttachMemAsync(stream, address, 4 * WORDS, CU_MEM_ATTACH_GLOBAL));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words[100] == 100 && words[1] == 2);
    MUST(cuStreamDestroy_v2(stream));
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(library));
}

static void many_loads(void)
{
    for (uint32_t i = 0; i < 40; i++) {
        CUlibrary library = load();
        uint32_t *counter = managed(library, "counter", 4);

        IS_TRUE(*counter == 5);
        *counter = i;
        count(library, 2);
        IS_TRUE(*counter == i + 2);
        *counter = 99;
        EXPECT(CUDA_SUCCESS, cuLibraryUnload(library));
    }
}

/* The kernels of all devices use the same one. */
static void devices_share_them(void)
{
    CUlibrary library = load();
    uint32_t *counter = managed(library, "counter", 4), expected = 5;
    CUcontext before, primary;
    int devices;

    MUST(cuDeviceGetCount(&devices));
    MUST(cuCtxGetCurrent(&before));
    for (int i = 0; i < 2 * devices; i++) {
        MUST(cuDevicePrimaryCtxRetain(&primary, i % devices));
        MUST(cuCtxSetCurrent(primary));
        IS_TRUE(managed(library, "counter", 4) == counter);
        *counter += 100;
        count(library, 1);
        expected += 101;
        IS_TRUE(*counter == expected);
    }
    MUST(cuCtxSetCurrent(before));
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(library));
    for (int i = 0; i < 2 * devices; i++)
        MUST(cuDevicePrimaryCtxRelease(i % devices));
}

static void a_reset_leaves_them(void)
{
    CUlibrary library = load();
    uint32_t *counter = managed(library, "counter", 4);
    CUcontext primary;
    CUdevice device;

    MUST(cuCtxGetDevice(&device));
    if (is_software(device)) {
        *counter = 30;
        count(library, 1);
        MUST(cuDevicePrimaryCtxReset(device));
        IS_TRUE(*counter == 31);
        *counter = 40;
        MUST(cuDevicePrimaryCtxRetain(&primary, device));
        MUST(cuCtxSetCurrent(primary));
        count(library, 1);
        IS_TRUE(*counter == 41 && managed(library, "counter", 4) == counter);
    }
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(library));
}

/* cudart asks before the program has made a context, and perhaps that is not the primary one. */
static void asked_for_early(void)
{
    CUdevice device = check_init();
    CUlibrary library = load();
    CUdeviceptr address;
    uint32_t *counter;
    CUcontext context;

    if (is_software(device)) {
        MUST(cuLibraryGetManaged(&address, NULL, library, "counter"));
        counter = (uint32_t *)(uintptr_t)address;
        IS_TRUE(*counter == 5);
        *counter = 60;
        MUST(cuCtxCreate_v2(&context, 0, device));
        count(library, 1);
        IS_TRUE(*counter == 61 && managed(library, "counter", 4) == counter);
        MUST(cuCtxDestroy_v2(context));
    }
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(library));
}

int main(void)
{
    RUN(asked_for_early);
    check_open();
    RUN(both_sides_use_them);
    RUN(names_that_are_not_managed);
    RUN(loads_are_apart);
    RUN(modules_have_them_too);
    RUN(what_the_address_is);
    RUN(copies_and_memsets);
    RUN(copies_end_with_a_variable);
    RUN(what_is_not_asked_for_stays);
    RUN(a_variable_is_attached);
    RUN(many_loads);
    RUN(devices_share_them);
    RUN(a_reset_leaves_them);
    return check_close();
}
