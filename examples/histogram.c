/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often each byte value occurs, counted with atomics. The data goes over in pieces from pinned
 * memory, on two streams by turns, so that a piece travels while another is counted.
 */
#include "example.h"

#include <stdlib.h>
#include <string.h>

#include "histogram.ptx.h"

#define BINS 256
#define BLOCK 256
#define BLOCKS 32
#define PIECE 65536
#define STREAMS 2

struct lane {
    CUstream stream;
    CUdeviceptr piece;
};

static void open_lane(struct lane *lane)
{
    CHECK(cuStreamCreate(&lane->stream, CU_STREAM_NON_BLOCKING));
    lane->piece = example_alloc(PIECE);
}

static void close_lane(struct lane *lane)
{
    CHECK(cuStreamSynchronize(lane->stream));
    CHECK(cuStreamDestroy(lane->stream));
    CHECK(cuMemFree(lane->piece));
}

static void count_piece(CUfunction histogram, struct lane *lane, const uint8_t *data, unsigned n,
                        CUdeviceptr counts)
{
    void *parameters[] = {&lane->piece, &n, &counts};

    CHECK(cuMemcpyHtoDAsync(lane->piece, data, n, lane->stream));
    CHECK(cuLaunchKernel(histogram, BLOCKS, 1, 1, BLOCK, 1, 1, 0, lane->stream, parameters, NULL));
}

static void count_on_device(struct example *example, const uint8_t *data, uint32_t *ret_counts)
{
    CUfunction histogram = example_function(example, "histogram");
    CUdeviceptr counts = example_alloc(BINS * sizeof(uint32_t));
    struct lane lanes[STREAMS];
    unsigned turn = 0;

    for (int i = 0; i < STREAMS; i++)
        open_lane(&lanes[i]);
    for (unsigned round = 0; round < example->rounds; round++) {
        CHECK(cuMemsetD32(counts, 0, BINS));
        CHECK(cuCtxSynchronize());
        for (unsigned at = 0; at < example->size; at += PIECE) {
            unsigned rest = example->size - at;

            count_piece(histogram, &lanes[turn++ % STREAMS], data + at, rest < PIECE ? rest : PIECE,
                        counts);
        }
        CHECK(cuCtxSynchronize());
        example_progress(example, round);
    }
    for (int i = 0; i < STREAMS; i++)
        close_lane(&lanes[i]);
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
