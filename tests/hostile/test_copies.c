/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and memsets of clients that lie about what is theirs.
 */
#include <string.h>

#include "hostile.h"
#include "region.h"
#include "small_copy.h"

static CUresult copy(struct peer *peer, uint64_t stream, uint64_t dst, uint64_t src, uint64_t size)
{
    const struct wire_cuMemcpyAsync in = {
        .dst = dst, .src = src, .ByteCount = size, .hStream = stream, .seq = 0};

    channel_lock(&peer->channel);
    wire_cuMemcpyAsync(&peer->channel, &in);
    channel_unlock(&peer->channel);
    return hostile_deferred(peer);
}

/* Neither the server's own memory nor a neighbor's can be reached by a copy. */
static void copies_out_of_bounds(void **state)
{
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    uint64_t stream = peer_make_stream(&peer, 1), own = peer.offer.staging_address;
    const uint64_t foreign[] = {0,
                                4096,
                                (uintptr_t)&peer,
                                hostile.witness.memory,
                                hostile.witness.peer.offer.staging_address,
                                peer.offer.window_base,
                                own + peer.offer.gpu_size,
                                UINT64_MAX - 10};

    for (unsigned i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        assert_int_equal(copy(&peer, stream, own, foreign[i], 64), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(copy(&peer, stream, foreign[i], own, 64), CUDA_ERROR_INVALID_VALUE);
    }
    assert_int_equal(copy(&peer, stream, own, own + 4096, UINT64_MAX), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy(&peer, stream, own, own + 4096, 4096), CUDA_SUCCESS);
    peer_leave(&peer);
}

static CUresult copy_batch(struct peer *peer, uint64_t stream, const void *copies, size_t size)
{
    const struct wire_fnCopyBatch in = {
        .hStream = stream, .copies = copies, .copies_size = (uint32_t)size};

    channel_lock(&peer->channel);
    wire_fnCopyBatch(&peer->channel, &in);
    channel_unlock(&peer->channel);
    return hostile_deferred(peer);
}

static CUresult copy_in_batch(struct peer *peer, uint64_t stream, uint64_t dst, uint64_t src,
                              uint64_t size)
{
    const uint64_t own = peer->offer.staging_address;
    const struct small_copy copies[] = {{own, own + 64, 8}, {dst, src, size}};

    return copy_batch(peer, stream, copies, sizeof(copies));
}

/* A copy that is refused is not hidden by a valid one before it. */
static void batches_out_of_bounds(void **state)
{
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    uint64_t stream = peer_make_stream(&peer, 1), own = peer.offer.staging_address;
    const uint64_t foreign[] = {0,
                                (uintptr_t)&peer,
                                hostile.witness.memory,
                                hostile.witness.peer.offer.staging_address,
                                peer.offer.window_base,
                                own + peer.offer.gpu_size,
                                UINT64_MAX - 10};
    const uint64_t sizes[] = {0, SMALL_COPY_MAX + 1, 1ull << 32, UINT64_MAX};
    struct small_copy copies[SMALL_COPIES_MAX] = {{own, own + 64, 8}};

    for (unsigned i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        assert_int_equal(copy_in_batch(&peer, stream, own, foreign[i], 64),
                         CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(copy_in_batch(&peer, stream, foreign[i], own, 64),
                         CUDA_ERROR_INVALID_VALUE);
    }
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        assert_int_equal(copy_in_batch(&peer, stream, own, own + 4096, sizes[i]),
                         CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_batch(&peer, stream, copies, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_batch(&peer, stream, copies, sizeof(*copies) - 1),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_batch(&peer, stream, copies, sizeof(copies)), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_batch(&peer, stream, copies, sizeof(*copies)), CUDA_SUCCESS);
    assert_int_equal(copy_in_batch(&peer, stream, own, own + 4096, SMALL_COPY_MAX), CUDA_SUCCESS);
    peer_leave(&peer);
}

#define SOURCES (64u << 10) /* where they begin in the staging memory */
#define SPACE 512u          /* bytes for each copy */

static unsigned bytes_before(unsigned copy)
{
    return copy % 9;
}

/* Half of them are aligned alike at both ends. */
static struct small_copy unaligned_copy(uint64_t own, unsigned index)
{
    const uint64_t at = own + SPACE * index + bytes_before(index);

    return (struct small_copy){at, at + SOURCES + index % 2 * 3, index % 3 ? 1 + index : 490};
}

static void check_copied(const unsigned char *staging, unsigned index)
{
    const unsigned first = bytes_before(index), size = (unsigned)unaligned_copy(0, index).size;
    const unsigned char *to = staging + SPACE * index, *from = to + SOURCES + index % 2 * 3;

    for (unsigned at = 0; at < SPACE; at++)
        assert_int_equal(to[at], at >= first && at < first + size ? from[at] : 0);
}

static void batches_write_nothing_else(void **state)
{
    struct small_copy copies[SMALL_COPIES_MAX];
    unsigned char *staging;
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    uint64_t stream = peer_make_stream(&peer, 1);
    staging = (unsigned char *)peer.gpu + GPU_REGION_STAGING_OFFSET;
    memset(staging, 0, SOURCES);
    for (unsigned i = 0; i < SOURCES; i++)
        staging[SOURCES + i] = (unsigned char)(1 + i % 251);
    for (unsigned i = 0; i < SMALL_COPIES_MAX; i++)
        copies[i] = unaligned_copy(peer.offer.staging_address, i);
    assert_int_equal(copy_batch(&peer, stream, copies, sizeof(copies)), CUDA_SUCCESS);
    assert_true(peer_fence(&peer, stream, 1) && peer_wait_fence(&peer, 1, 1));
    for (unsigned i = 0; i < SMALL_COPIES_MAX; i++)
        check_copied(staging, i);
    peer_leave(&peer);
}

static CUresult set(struct peer *peer, struct wire_fnMemset in)
{
    channel_lock(&peer->channel);
    wire_fnMemset(&peer->channel, &in);
    channel_unlock(&peer->channel);
    return hostile_deferred(peer);
}

/* Nor by a memset, whose size is a product. */
static void memsets_out_of_bounds(void **state)
{
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    uint64_t stream = peer_make_stream(&peer, 1), own = peer.offer.staging_address;
    const struct wire_fnMemset honest = {
        .dst = own, .pitch = 64, .element_size = 4, .width = 16, .height = 2, .hStream = stream};
    const uint64_t foreign[] = {0,
                                (uintptr_t)&peer,
                                hostile.witness.memory,
                                hostile.witness.peer.offer.staging_address,
                                own + peer.offer.gpu_size,
                                UINT64_MAX - 10};
    struct wire_fnMemset in = honest;

    for (unsigned i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        in.dst = foreign[i];
        assert_int_equal(set(&peer, in), CUDA_ERROR_INVALID_VALUE);
    }
    in = honest;
    in.element_size = 3;
    assert_int_equal(set(&peer, in), CUDA_ERROR_INVALID_VALUE);
    in = honest;
    in.width = 1ull << 62; /* of 4 bytes each: 0, without the carry */
    assert_int_equal(set(&peer, in), CUDA_ERROR_INVALID_VALUE);
    in = honest;
    in.pitch = 1ull << 63;
    in.height = 3;
    assert_int_equal(set(&peer, in), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(set(&peer, honest), CUDA_SUCCESS);
    peer_leave(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(copies_out_of_bounds),
        HOSTILE_CASE(batches_out_of_bounds),
        HOSTILE_CASE(batches_write_nothing_else),
        HOSTILE_CASE(memsets_out_of_bounds),
    };

    return HOSTILE_MAIN(tests);
}
