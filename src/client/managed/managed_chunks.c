/* SPDX-License-Identifier: Apache-2.0 */
#include "managed_chunks.h"

#include "fd.h"
#include "granule.h"
#include "managed_exchange.h"

/* Of a larger array, a part may be on the device and the rest out. Larger chunks would leave more
 * of a device unused, smaller ones would take more calls of the driver. */
#define CHUNK_SIZE (UINT64_C(32) << 20)

/* An area that is being made. */
struct area_build {
    const struct heap *heap;
    uint64_t start, size, done; /* start: 0 before the first chunk */
    bool hosted;                /* from now on */
    void (*trim)(void);         /* NULL once that was done */
};

static uint64_t chunk_size(const struct area_build *build)
{
    uint64_t left = build->size - build->done;

    return left < CHUNK_SIZE ? left : CHUNK_SIZE;
}

static CUresult create_chunk(const struct area_build *build, uint64_t *ret_address, int *ret_fd)
{
    *ret_address = build->start ? build->start + build->done : 0;
    return granule_create_adjacent(build->heap->part, build->hosted, chunk_size(build),
                                   build->size - build->done, ret_address, ret_fd);
}

/* Where the device has no capacity, the chunk is hosted, if the driver has such memory. */
static CUresult create_somewhere(struct area_build *build, uint64_t *ret_address, int *ret_fd)
{
    CUresult result = create_chunk(build, ret_address, ret_fd);

    if (result != CUDA_ERROR_OUT_OF_MEMORY || build->hosted || build->size <= CHUNK_SIZE)
        return result;
    if (build->trim) {
        build->trim();
        build->trim = NULL;
        return create_somewhere(build, ret_address, ret_fd);
    }
    build->hosted = true;
    return create_chunk(build, ret_address, ret_fd) == CUDA_SUCCESS ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add_chunk(struct area_build *build)
{
    struct exchange_chunk chunk = {.device = build->heap->part, .size = chunk_size(build)};
    int fd;
    CUresult result = create_somewhere(build, &chunk.address, &fd);

    if (result != CUDA_SUCCESS)
        return result;
    if (!build->start)
        build->start = chunk.address;
    chunk.area = build->start;
    chunk.out = build->hosted;
    if (!exchange_enter(&chunk, fd)) {
        device_granules.release(chunk.address, chunk.size);
        fd_close(&fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    build->done += chunk.size;
    return CUDA_SUCCESS;
}

CUresult chunks_create(const struct heap *heap, bool hosted, uint64_t size, void (*trim)(void),
                       uint64_t *ret_address)
{
    struct area_build build = {.heap = heap, .size = size, .hosted = hosted, .trim = trim};
    CUresult result = CUDA_SUCCESS;

    while (build.done < size && result == CUDA_SUCCESS)
        result = add_chunk(&build);
    if (result != CUDA_SUCCESS)
        chunks_release(build.start, build.done);
    else
        *ret_address = build.start;
    return result;
}

void chunks_release(uint64_t address, uint64_t size)
{
    uint64_t end = address + size, chunk;
    int fd;

    for (; address < end; address += chunk) {
        chunk = exchange_leave(address, &fd);
        device_granules.release(address, chunk);
        fd_close(&fd);
    }
}

CUresult chunks_replay(const struct heap *heap, uint64_t address, uint64_t size)
{
    uint64_t end = address + size;
    struct exchange_chunk chunk;
    CUresult result = CUDA_SUCCESS;
    int fd;

    for (; address < end && result == CUDA_SUCCESS; address += chunk.size) {
        exchange_look(address, &chunk, &fd);
        result = chunk.out ? granule_replay_hosted(heap, address, chunk.size, fd)
                           : granule_replay_device(heap, address, chunk.size, fd);
    }
    return result;
}
