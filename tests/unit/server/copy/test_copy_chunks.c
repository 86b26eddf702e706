/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies that cross chunks of locked memory, by a driver that refuses to cross a border. The bytes
 * have to be the same as with one call.
 */
#include "fake_driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "attach.h"
#include "copy_chunks.h"
#include "page_lock.h"

#define CHUNK PAGE_LOCK_CHUNK
#define MEMORY (4 * CHUNK)

/* Host memory of a window, of which the copies know the addresses, and memory of a device. */
static char *host, *device, *expected;
static struct devices devices;
static struct page_locker locker = {.chunk_size = PAGE_LOCK_CHUNK};
static struct window window;
static unsigned calls;

static bool crosses(uint64_t address, uint64_t span)
{
    uint64_t at = address - (uintptr_t)host;

    return at < MEMORY && address / CHUNK != (address + span - 1) / CHUNK;
}

static CUresult copy_row(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
    calls++;
    if (crosses(dst, size) || crosses(src, size))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, size);
    return CUDA_SUCCESS;
}

static CUresult copy_up(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
    return copy_row(dst, (uintptr_t)src, size, stream);
}

static void copy_rows(const CUDA_MEMCPY3D *box)
{
    for (size_t z = 0; z < box->Depth; z++)
        for (size_t y = 0; y < box->Height; y++)
            memcpy((char *)(uintptr_t)box->dstDevice + (z * box->dstHeight + y) * box->dstPitch,
                   (char *)(uintptr_t)box->srcDevice + (z * box->srcHeight + y) * box->srcPitch,
                   box->WidthInBytes);
}

static uint64_t span(const CUDA_MEMCPY3D *box, size_t pitch, size_t height)
{
    return (box->Depth - 1) * height * pitch + (box->Height - 1) * pitch + box->WidthInBytes;
}

static CUresult copy_box(const CUDA_MEMCPY3D *box, CUstream stream)
{
    calls++;
    if (crosses(box->dstDevice, span(box, box->dstPitch, box->dstHeight)) ||
        crosses(box->srcDevice, span(box, box->srcPitch, box->srcHeight)))
        return CUDA_ERROR_INVALID_VALUE;
    copy_rows(box);
    return CUDA_SUCCESS;
}

static CUresult fill(CUdeviceptr dst, unsigned value, size_t count, CUstream stream)
{
    calls++;
    if (crosses(dst, 4 * count))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        memcpy((char *)(uintptr_t)dst + 4 * i, &value, 4);
    return CUDA_SUCCESS;
}

static CUresult fill_rows(CUdeviceptr dst, size_t pitch, unsigned value, size_t width,
                          size_t height, CUstream stream)
{
    calls++;
    if (crosses(dst, (height - 1) * pitch + 4 * width))
        return CUDA_ERROR_INVALID_VALUE;
    calls--;
    for (size_t y = 0; y < height; y++)
        fill(dst + y * pitch, value, width, stream);
    calls -= (unsigned)height;
    calls++;
    return CUDA_SUCCESS;
}

static char *map(void)
{
    char *memory = mmap(NULL, MEMORY + CHUNK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_true(memory != MAP_FAILED);
    return (char *)(((uintptr_t)memory + CHUNK - 1) / CHUNK * CHUNK);
}

static int setup(void **state)
{
    host = map();
    device = map();
    expected = map();
    window = (struct window){.devices = &devices,
                             .page_locker = &locker,
                             .host_base = (uintptr_t)host - GPU_REGION_SIZE};
    driver.cuMemcpyAsync = copy_row;
    driver.cuMemcpyHtoDAsync_v2 = copy_up;
    driver.cuMemcpy3DAsync_v2 = copy_box;
    driver.cuMemsetD32Async = fill;
    driver.cuMemsetD2D32Async = fill_rows;
    for (size_t i = 0; i < MEMORY; i += 4)
        memcpy(device + i, &(uint32_t){(uint32_t)i * 2654435761u}, 4);
    return 0;
}

static void begin(void)
{
    memset(host, 0, MEMORY);
    memset(expected, 0, MEMORY);
    calls = 0;
}

static void rows(void **state)
{
    begin();
    assert_int_equal(copy_chunks(&window, (uintptr_t)host + 100, (uintptr_t)device, 1000, NULL), 0);
    assert_int_equal(calls, 1);
    memcpy(expected + 100, device, 1000);
    assert_int_equal(
        copy_chunks(&window, (uintptr_t)host + CHUNK - 10, (uintptr_t)device, 2 * CHUNK, NULL), 0);
    assert_int_equal(calls, 4);
    memcpy(expected + CHUNK - 10, device, 2 * CHUNK);
    assert_int_equal(copy_chunks_up(&window, (uintptr_t)host + CHUNK - 3, device, 9, NULL), 0);
    memcpy(expected + CHUNK - 3, device, 9);
    assert_memory_equal(host, expected, MEMORY);
    assert_int_equal(copy_chunks(&window, (uintptr_t)host, (uintptr_t)device, 0, NULL), 0);
    assert_int_equal(calls, 6);
}

/* Into host memory at an offset, and out of it again. */
/* Of an allocation that consists of granules, each may be elsewhere. */
static void granules_of_a_divided_allocation(void **state)
{
    struct window divided = {.devices = &devices,
                             .page_locker = &locker,
                             .base = (uintptr_t)device,
                             .host_base = (uintptr_t)device + MEMORY};
    const struct wire_fnMemset in = {
        .dst = (uintptr_t)device, .width = 2000, .height = 1, .element_size = 4};

    ranges_add(&divided.used, (uintptr_t)device, 4096, NULL);
    ranges_add(&divided.used, (uintptr_t)device + 4096, 4096, NULL);
    begin();
    assert_int_equal(copy_chunks(&divided, (uintptr_t)host, (uintptr_t)device, 8192, NULL), 0);
    assert_int_equal(calls, 1);
    assert_false(copy_chunks_splits_memset(&divided, &in));
    divided.is_divided = true;
    assert_int_equal(copy_chunks(&divided, (uintptr_t)host, (uintptr_t)device, 8192, NULL), 0);
    assert_int_equal(calls, 3);
    assert_true(copy_chunks_splits_memset(&divided, &in));
    memcpy(expected, device, 8192);
    assert_memory_equal(host, expected, MEMORY);
    ranges_fini(&divided.used);
}

static void check_box(uint64_t offset, uint64_t width, uint64_t pitch, uint64_t height,
                      uint64_t slice, uint64_t depth, unsigned most_calls)
{
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .srcDevice = (uintptr_t)device,
                         .srcPitch = width,
                         .srcHeight = height,
                         .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .dstDevice = (uintptr_t)host + offset,
                         .dstPitch = pitch,
                         .dstHeight = slice,
                         .WidthInBytes = width,
                         .Height = height,
                         .Depth = depth};

    begin();
    assert_int_equal(copy_chunks_splits_box(&window, &box), most_calls > 1);
    assert_int_equal(copy_chunks_box(&window, &box, NULL), CUDA_SUCCESS);
    assert_in_range(calls, 1, most_calls);
    box.dstDevice = (uintptr_t)expected + offset;
    copy_rows(&box);
    assert_memory_equal(host, expected, MEMORY);

    CUDA_MEMCPY3D back = box;
    back.srcDevice = (uintptr_t)host + offset;
    back.srcPitch = pitch;
    back.srcHeight = slice;
    back.dstDevice = (uintptr_t)expected;
    back.dstPitch = width;
    back.dstHeight = height;
    memset(expected, 0, MEMORY);
    assert_int_equal(copy_chunks_box(&window, &back, NULL), CUDA_SUCCESS);
    assert_memory_equal(expected, device, width * height * depth);
}

static void boxes(void **state)
{
    check_box(0, 100, 128, 50, 60, 20, 1);             /* in one chunk */
    check_box(CHUNK - 5000, 100, 128, 50, 60, 1, 4);   /* a slice that crosses within a row */
    check_box(CHUNK - 5120, 100, 128, 50, 60, 1, 2);   /* ... between rows */
    check_box(CHUNK - 5000, 100, 128, 50, 60, 200, 8); /* slices in the chunks before and behind */
    check_box(CHUNK - 64, 1 << 20, 1 << 20, 20, 20, 1, 12);     /* large rows */
    check_box(CHUNK / 2, CHUNK + 100, CHUNK + 100, 3, 3, 1, 9); /* each row crosses */
    check_box(10, 1, CHUNK, 4, 4, 1, 4);                        /* a row in each chunk */
    check_box(10, 1, 1, 1, CHUNK, 4, 4);                        /* a slice in each chunk */
}

/* It accesses no host memory, however large it is. */
static void boxes_of_the_device(void **state)
{
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .srcDevice = (uintptr_t)device,
                         .srcPitch = CHUNK,
                         .srcHeight = 3,
                         .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .dstDevice = (uintptr_t)expected,
                         .dstPitch = CHUNK,
                         .dstHeight = 3,
                         .WidthInBytes = CHUNK,
                         .Height = 3,
                         .Depth = 1};

    begin();
    assert_int_equal(copy_chunks_box(&window, &box, NULL), CUDA_SUCCESS);
    assert_int_equal(calls, 1);
    assert_memory_equal(device, expected, 3 * CHUNK);
}

/* Every slice overlaps the one before, and crosses a border. */
static void a_box_without_an_end(void **state)
{
    const CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                               .srcDevice = (uintptr_t)device,
                               .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                               .dstDevice = (uintptr_t)host + CHUNK - 1,
                               .WidthInBytes = 2,
                               .Height = 1,
                               .Depth = 1ull << 40};

    begin();
    assert_int_equal(copy_chunks_box(&window, &box, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void memsets(void **state)
{
    struct wire_fnMemset in = {.dst = (uintptr_t)host + CHUNK - 64,
                               .pitch = 256,
                               .value = 0x01020304,
                               .element_size = 4,
                               .width = 3 * CHUNK / 8,
                               .height = 1};

    begin();
    assert_true(copy_chunks_splits_memset(&window, &in));
    assert_int_equal(copy_chunks_memset(&window, &in, NULL), CUDA_SUCCESS);
    assert_int_equal(calls, 3);
    for (size_t i = 0; i < in.width; i++)
        memcpy(expected + CHUNK - 64 + 4 * i, &in.value, 4);
    assert_memory_equal(host, expected, MEMORY);

    begin();
    in.dst = (uintptr_t)host + CHUNK - 1000 * 256 - 80;
    in.width = 60;
    in.height = 2000;
    assert_int_equal(copy_chunks_memset(&window, &in, NULL), CUDA_SUCCESS);
    assert_int_equal(calls, 4);
    for (size_t y = 0; y < 2000; y++)
        for (size_t i = 0; i < in.width; i++)
            memcpy(expected + (in.dst - (uintptr_t)host) + y * 256 + 4 * i, &in.value, 4);
    assert_memory_equal(host, expected, MEMORY);
    in.height = 10;
    assert_false(copy_chunks_splits_memset(&window, &in));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(granules_of_a_divided_allocation),
        cmocka_unit_test(boxes),
        cmocka_unit_test(boxes_of_the_device),
        cmocka_unit_test(a_box_without_an_end),
        cmocka_unit_test(memsets),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
