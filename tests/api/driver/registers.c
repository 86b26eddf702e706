/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the program's own that is page-locked later: cuMemHostRegister. The device may reach it
 * at another address than the program.
 */
#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (3u << 20)
#define PAGE 4096u
#define THREADS 3u

static CUmodule module;

static uint8_t *map_pages(size_t size, int protection, int flags, int fd)
{
    void *pages = mmap(NULL, size, protection, flags, fd, 0);

    IS_TRUE(pages != MAP_FAILED);
    return pages;
}

static uint8_t *some_pages(size_t size)
{
    return map_pages(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* What was there before stays, and what the device writes is seen, also when it is over. */
static void kernels_reach_it(void)
{
    uint8_t *bytes = some_pages(SIZE);
    uint32_t *words = (uint32_t *)(void *)bytes;

    memset(bytes, 7, SIZE);
    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(bytes, SIZE, CU_MEMHOSTREGISTER_DEVICEMAP));
    IS_TRUE(bytes_are(bytes, SIZE, 7));
    fill_words(module, seen_by_device(words), 77, 1000);
    IS_TRUE(words[0] == 77 && words[999] == 77 && words[1000] == 0x07070707);
    fill_words(module, seen_by_device(words + 5000), 78, 10);
    IS_TRUE(words[4999] == 0x07070707 && words[5000] == 78 && words[5010] == 0x07070707);
    words[1] = 1;
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(bytes));
    IS_TRUE(words[0] == 77 && words[1] == 1 && words[5009] == 78);
    IS_TRUE(bytes_are(bytes + SIZE / 2, SIZE / 2, 7));
    munmap(bytes, SIZE);
}

static void copies_in_both_directions(void)
{
    uint8_t *from = some_pages(SIZE), *to = some_pages(SIZE);
    CUdeviceptr device = make_words(SIZE / 4, 0);

    memset(from, 3, SIZE);
    MUST(cuMemHostRegister_v2(from, SIZE, CU_MEMHOSTREGISTER_PORTABLE));
    MUST(cuMemHostRegister_v2(to, SIZE, 0));
    EXPECT(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(device, from, SIZE, NULL));
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoHAsync_v2(to + 100, device, SIZE - 100, NULL));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(NULL));
    IS_TRUE(bytes_are(to, 100, 0) && bytes_are(to + 100, SIZE - 100, 3));
    from[1] = 4;
    EXPECT(CUDA_SUCCESS, cuMemcpyHtoD_v2(device, from, SIZE));
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoH_v2(to, device, SIZE));
    IS_TRUE(to[0] == 3 && to[1] == 4 && to[2] == 3);
    EXPECT(CUDA_SUCCESS, cuMemsetD8_v2(seen_by_device(to), 9, SIZE / 2));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(bytes_are(to, SIZE / 2, 9) && to[SIZE / 2] == 3);
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(from));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(to));
    MUST(cuMemFree_v2(device));
    munmap(from, SIZE);
    munmap(to, SIZE);
}

static void a_box(void)
{
    uint8_t *host = some_pages(SIZE);
    CUdeviceptr device = make_words(SIZE / 4, 0);
    CUDA_MEMCPY2D box = {
        .srcMemoryType = CU_MEMORYTYPE_HOST,
        .srcHost = host,
        .srcPitch = 1000,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = device,
        .dstPitch = 512,
        .WidthInBytes = 300,
        .Height = 1500,
    };
    uint8_t row[512];

    MUST(cuMemHostRegister_v2(host, SIZE, 0));
    memset(host + 1499u * 1000u, 6, 300);
    EXPECT(CUDA_SUCCESS, cuMemcpy2D_v2(&box));
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoH_v2(row, device + 1499u * 512u, sizeof(row)));
    IS_TRUE(bytes_are(row, 300, 6) && bytes_are(row + 300, 212, 0));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(host));
    MUST(cuMemFree_v2(device));
    munmap(host, SIZE);
}

static void check_captured_copy(size_t size)
{
    uint8_t *host = some_pages(size), *back = some_pages(size);
    CUdeviceptr device = make_words(size / 4, 0);
    CUgraphExec exec;
    CUgraph graph;
    CUstream stream;

    MUST(cuMemHostRegister_v2(host, size, 0));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(device, host, size, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    memset(host, 8, size);
    for (int i = 0; i < 2; i++)
        EXPECT(CUDA_SUCCESS, cuGraphLaunch(exec, stream));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoH_v2(back, device, size));
    IS_TRUE(bytes_are(back, size, 8));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    MUST(cuStreamDestroy_v2(stream));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(host));
    MUST(cuMemFree_v2(device));
    munmap(host, size);
    munmap(back, size);
}

static void a_captured_copy(void)
{
    check_captured_copy(SIZE);
    check_captured_copy(20u << 20);
}

/* A driver may lock so much in several chunks, which the program must not notice. */
static void large_memory(void)
{
    const size_t size = 20u << 20;
    uint8_t *host = some_pages(size), *back;
    CUdeviceptr device = make_words(size / 4, 0), pinned;
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = device,
                         .srcPitch = 3001,
                         .srcHeight = 1100,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstPitch = 3072,
                         .dstHeight = 1200,
                         .WidthInBytes = 3001,
                         .Height = 1100,
                         .Depth = 5};

    MUST(cuMemAllocHost_v2((void **)&back, size));
    MUST(cuMemHostRegister_v2(host, size, 0));
    pinned = seen_by_device(host);
    for (size_t i = 0; i < size; i++)
        host[i] = (uint8_t)(i * 2654435761u >> 13);
    EXPECT(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(device, host + 1, size - 1, NULL));
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoHAsync_v2(back, device, size - 1, NULL));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(NULL));
    IS_TRUE(memcmp(back, host + 1, size - 1) == 0);
    EXPECT(CUDA_SUCCESS, cuMemcpyHtoD_v2(device, host, size));
    box.dstHost = back;
    EXPECT(CUDA_SUCCESS, cuMemcpy3D_v2(&box));
    for (size_t row = 0; row < 1100; row += 99)
        IS_TRUE(memcmp(back + (4 * 1200 + row) * 3072, host + (4 * 1100 + row) * 3001, 3001) == 0);
    EXPECT(CUDA_SUCCESS, cuMemsetD32_v2(pinned, 0x01010101, size / 4));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(bytes_are(host, size, 1));
    EXPECT(CUDA_SUCCESS, cuMemsetD2D8_v2(pinned + 100, 5000, 2, 3000, 4000));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(host[99] == 1 && bytes_are(host + 100, 3000, 2) && host[3100] == 1);
    IS_TRUE(bytes_are(host + 100 + 3999u * 5000u, 3000, 2) && host[99 + 3999u * 5000u] == 1);
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(host));
    MUST(cuMemFreeHost(back));
    MUST(cuMemFree_v2(device));
    munmap(host, size);
}

/* Neither begin nor end are those of a page, and what is beside them is not disturbed. */
static void memory_of_malloc(void)
{
    uint8_t *before = malloc(1000), *bytes = malloc(70001), *behind = malloc(1000);

    memset(before, 1, 1000);
    memset(bytes, 2, 70001);
    memset(behind, 3, 1000);
    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(bytes + 1, 70000, 0));
    IS_TRUE(bytes_are(before, 1000, 1) && bytes_are(bytes, 70001, 2) && bytes_are(behind, 1000, 3));
    EXPECT(CUDA_SUCCESS, cuMemsetD8_v2(seen_by_device(bytes + 1), 5, 70000));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(bytes[0] == 2 && bytes_are(bytes + 1, 70000, 5));
    EXPECT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(bytes));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(bytes + 1));
    IS_TRUE(bytes_are(before, 1000, 1) && bytes_are(bytes + 1, 70000, 5));
    IS_TRUE(bytes_are(behind, 1000, 3));
    free(before);
    free(bytes);
    free(behind);
}

static uint8_t initialized[100000] = {1, 2, 3};

static void variables_of_the_program(void)
{
    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(initialized, sizeof(initialized), 0));
    IS_TRUE(initialized[0] == 1 && initialized[2] == 3 && initialized[3] == 0);
    EXPECT(CUDA_SUCCESS, cuMemsetD8_v2(seen_by_device(initialized + 3), 4, 99997));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(initialized[2] == 3 && bytes_are(initialized + 3, 99997, 4));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(initialized));
    IS_TRUE(initialized[2] == 3 && initialized[99999] == 4);
}

static void mistakes(void)
{
    uint8_t *pages = some_pages(16 * PAGE), *pinned;

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(NULL, PAGE, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(pages, 0, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(pages, PAGE, 0x1000));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(NULL));
    EXPECT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(pages));
    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(pages + 4 * PAGE, 4 * PAGE, 0));
    EXPECT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
           cuMemHostRegister_v2(pages + 4 * PAGE, 4 * PAGE, 0));
    EXPECT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
           cuMemHostRegister_v2(pages + 7 * PAGE, 4 * PAGE, 0));
    EXPECT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(pages, 16 * PAGE, 0));
    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(pages + 8 * PAGE, PAGE, 0));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(pages + 4 * PAGE));
    EXPECT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(pages + 4 * PAGE));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(pages + 8 * PAGE));
    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(pages, 16 * PAGE, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pages));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(pages));
    MUST(cuMemAllocHost_v2((void **)&pinned, PAGE));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(pinned, PAGE, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(pinned));
    MUST(cuMemFreeHost(pinned));
    munmap(pages, 16 * PAGE);
    IS_TRUE(cuMemHostRegister_v2(pages, 16 * PAGE, 0) != CUDA_SUCCESS);
}

static void what_an_address_is(void)
{
    uint8_t *pages = some_pages(4 * PAGE);
    CUdeviceptr device = 0;
    unsigned type = 0;
    void *host = NULL;

    MUST(cuMemHostRegister_v2(pages, 4 * PAGE, 0));
    EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                               (CUdeviceptr)(uintptr_t)(pages + 5)));
    IS_TRUE(type == CU_MEMORYTYPE_HOST);
    EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                               (CUdeviceptr)(uintptr_t)(pages + 5)));
    IS_TRUE(device == seen_by_device(pages + 5));
    EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, device));
    IS_TRUE(host == pages + 5);
    MUST(cuMemHostUnregister(pages));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                           (CUdeviceptr)(uintptr_t)pages));
    munmap(pages, 4 * PAGE);
}

/* As models are mapped that no process writes to. */
static void a_file_for_reading(void)
{
    char name[] = "/tmp/registers-XXXXXX";
    int fd = mkstemp(name), supported = 0;
    uint8_t *pages, *back = malloc(SIZE);
    CUdeviceptr device = make_words(SIZE / 4, 0);

    unlink(name);
    memset(back, 11, SIZE);
    IS_TRUE(write(fd, back, SIZE) == (ssize_t)SIZE);
    memset(back, 0, SIZE);
    pages = map_pages(SIZE, PROT_READ, MAP_SHARED, fd);
    MUST(
        cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 0));
    if (supported) {
        EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(pages, SIZE, CU_MEMHOSTREGISTER_READ_ONLY));
        EXPECT(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(device, pages, SIZE, NULL));
        EXPECT(CUDA_SUCCESS, cuMemcpyDtoH_v2(back, device, SIZE));
        IS_TRUE(bytes_are(back, SIZE, 11));
        EXPECT(CUDA_SUCCESS, cuMemHostUnregister(pages));
    }
    IS_TRUE(bytes_are(pages, SIZE, 11));
    munmap(pages, SIZE);
    MUST(cuMemFree_v2(device));
    free(back);
    close(fd);
}

/* ---- threads ---- */

struct writer {
    pthread_t thread;
    uint32_t *words; /* one in each page */
    atomic_bool *stop;
    uint32_t rounds;
};

static void *write_on(void *argument)
{
    struct writer *writer = argument;

    while (!atomic_load(writer->stop)) {
        for (uint32_t at = 0; at < SIZE / 4; at += PAGE / 4)
            writer->words[at]++;
        writer->rounds++;
    }
    return NULL;
}

static bool all_are(const struct writer *writer)
{
    for (uint32_t at = 0; at < SIZE / 4; at += PAGE / 4)
        if (writer->words[at] != writer->rounds)
            return false;
    return true;
}

/* No write is lost while pages become locked or free. */
static void threads_that_write(void)
{
    struct writer writers[THREADS];
    atomic_bool stop = false;
    uint8_t *pages = some_pages(SIZE);

    for (unsigned i = 0; i < THREADS; i++) {
        writers[i] = (struct writer){.words = (uint32_t *)(void *)pages + i, .stop = &stop};
        pthread_create(&writers[i].thread, NULL, write_on, &writers[i]);
    }
    for (int i = 0; i < 20; i++) {
        EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(pages, SIZE, 0));
        EXPECT(CUDA_SUCCESS, cuMemHostUnregister(pages));
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(writers[i].thread, NULL);
        IS_TRUE(all_are(&writers[i]));
    }
    munmap(pages, SIZE);
}

static uint32_t counted[16 * PAGE / 4] __attribute__((aligned(4096))) = {1};

struct counter {
    pthread_t thread;
    uint32_t *words; /* one in each page */
    atomic_bool *stop;
    atomic_uint rounds;
};

static void *count_on(void *argument)
{
    struct counter *counter = argument;

    while (!atomic_load(counter->stop)) {
        for (uint32_t at = 0; at < sizeof(counted) / 4; at += PAGE / 4)
            counter->words[at]++;
        atomic_fetch_add(&counter->rounds, 1);
    }
    return NULL;
}

static bool has_counted(const struct counter *counter)
{
    for (uint32_t at = 0; at < sizeof(counted) / 4; at += PAGE / 4)
        if (counter->words[at] != counter->rounds)
            return false;
    return true;
}

/* Variables with a value at the start are memory of the program's file. */
static void variables_that_threads_write(void)
{
    struct counter counters[THREADS];
    atomic_bool stop = false;

    for (unsigned i = 0; i < THREADS; i++) {
        counters[i] = (struct counter){.words = counted + 1 + i, .stop = &stop};
        pthread_create(&counters[i].thread, NULL, count_on, &counters[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        while (!atomic_load(&counters[i].rounds))
            usleep(100);
    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(counted, sizeof(counted), 0));
    IS_TRUE(word_at(seen_by_device(counted)) == 1);
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(counted));
    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(counted, sizeof(counted), 0));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(counted));
    atomic_store(&stop, true);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(counters[i].thread, NULL);
        IS_TRUE(has_counted(&counters[i]));
    }
}

/* ---- ends ---- */

static void a_child(void)
{
    uint8_t *pages = some_pages(SIZE);
    int status = -1;

    memset(pages, 1, SIZE);
    MUST(cuMemHostRegister_v2(pages, SIZE, 0));
    pid_t pid = fork();
    if (pid == 0) {
        bool right = bytes_are(pages, SIZE, 1);

        memset(pages, 2, SIZE);
        _exit(right ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    IS_TRUE(status == 0);
    IS_TRUE(bytes_are(pages, SIZE, 1));
    EXPECT(CUDA_SUCCESS, cuMemsetD8_v2(seen_by_device(pages), 3, SIZE));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(bytes_are(pages, SIZE, 3));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(pages));
    munmap(pages, SIZE);
}

/* What the program has mapped there since is left alone. */
static void unmapped_in_between(void)
{
    uint8_t *pages = some_pages(4 * PAGE), *again;

    MUST(cuMemHostRegister_v2(pages, 4 * PAGE, 0));
    munmap(pages, 4 * PAGE);
    again = mmap(pages, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                 -1, 0);
    memset(again, 5, 4 * PAGE);
    cuMemHostUnregister(pages);
    IS_TRUE(bytes_are(again, 4 * PAGE, 5));
    munmap(again, 4 * PAGE);
}

static void a_context_that_ends(void)
{
    uint8_t *pages = some_pages(SIZE);
    CUcontext before, context;

    memset(pages, 4, SIZE);
    MUST(cuCtxGetCurrent(&before));
    MUST(cuCtxCreate_v4(&context, NULL, 0, 0));
    MUST(cuMemHostRegister_v2(pages, SIZE, 0));
    MUST(cuCtxDestroy_v2(context));
    MUST(cuCtxSetCurrent(before));
    IS_TRUE(bytes_are(pages, SIZE, 4));
    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(pages, SIZE, 0));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(pages));
    munmap(pages, SIZE);
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    check_open();
    module = load_kernels();
    RUN(kernels_reach_it);
    RUN(copies_in_both_directions);
    RUN(a_box);
    RUN(a_captured_copy);
    RUN(large_memory);
    RUN(memory_of_malloc);
    RUN(variables_of_the_program);
    RUN(mistakes);
    RUN(what_an_address_is);
    RUN(a_file_for_reading);
    RUN(threads_that_write);
    RUN(variables_that_threads_write);
    RUN(a_child);
    RUN(unmapped_in_between);
    RUN(a_context_that_ends);
    MUST(cuModuleUnload(module));
    return check_close();
}
