/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often each byte value occurs, counted with atomics. The data goes over in chunks from pinned
 * memory, on two streams by turns, so that a chunk travels while another is counted.
 */
#include "example.h"

#include <stdlib.h>
#include <string.h>

#include "histogram.ptx.h"

#define BINS 256
#define BLOCK 256
#define BLOCKS 32
#define CHUNK 65536
#define STREAMS 2

struct chunk_stream {
    CUstream stream;
    CUdeviceptr chunk;
};

static void open_stream(struct chunk_stream *stream)
{
    CHECK(cuStreamCreate(&stream->stream, CU_STREAM_NON_BLOCKING));
    stream->chunk = example_alloc(CHUNK);
}

static void close_stream(struct chunk_stream *stream)
{
    CHECK(cuStreamSynchronize(stream->stream));
    CHECK(cuStreamDestroy(stream->stream));
    CHECK(cuMemFree(stream->chunk));
}

static void count_chunk(CUfunction histogram, struct chunk_stream *stream, const uint8_t *data,
                        unsigned n, CUdeviceptr counts)
{
    void *parameters[] = {&stream->chunk, &n, &counts};

    CHECK(cuMemcpyHtoDAsync(stream->chunk, data, n, stream->stream));
    CHECK(
        cuLaunchKernel(histogram, BLOCKS, 1, 1, BLOCK, 1, 1, 0, stream->stream, parameters, NULL));
}

static void count_on_device(struct example *example, const uint8_t *data, uint32_t *ret_counts)
{
    CUfunction histogram = example_function(example, "histogram");
    CUdeviceptr counts = example_alloc(BINS * sizeof(uint32_t));
    struct chunk_stream streams[STREAMS];
    unsigned turn = 0;

    for (int i = 0; i < STREAMS; i++)
        open_stream(&streams[i]);
    for (unsigned round = 0; round < example->rounds; round++) {
        CHECK(cuMemsetD32(counts, 0, BINS));
        CHECK(cuCtxSynchronize());
        for (unsigned at = 0; at < example->size; at += CHUNK) {
            unsigned rest = example->size - at;

            count_chunk(histogram, &streams[turn++ % STREAMS], data + at,
                        rest < CHUNK ? rest : CHUNK, counts);
        }
        CHECK(cuCtxSynchronize());
        example_progress(example, round);
    }
    for (int i = 0; i < STREAMS; i++)
        close_stream(&streams[i]);
    CHECK(cuMemcpyDtoH(ret_counts, counts, BINS * sizeof(uint32_t)));
    CHECK(cuMemFree(counts));
}

/* The product of two uniform bytes is not uniform, so the bins differ. */
static void fill(uint8_t *data, unsigned n)
{
    uint32_t seed = 1;

    for (unsigned i = 0; i < n; i++)
        data[i] = (uint8_t)((example_random(&seed) & 0xff) * (example_random(&seed) & 0xff) >> 8);
}

int main(int argc, char **argv)
{
    struct example example = {.name = "histogram", .size = 300000, .rounds = 1};
    uint32_t expected[BINS] = {0}, counts[BINS];
    void *pinned;
    uint8_t *data;

    example_open(&example, argc, argv, histogram_ptx);
    CHECK(cuMemAllocHost_v2(&pinned, example.size));
    data = pinned;
    fill(data, example.size);
    for (unsigned i = 0; i < example.size; i++)
        expected[data[i]]++;

    count_on_device(&example, data, counts);
    CHECK(cuMemFreeHost(pinned));
    return example_close(&example, memcmp(counts, expected, sizeof(counts)) == 0,
                         example_checksum(counts, sizeof(counts)));
}
