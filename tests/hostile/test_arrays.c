/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays and texture objects of clients that lie: forged handles, boxes outside an array, memory of
 * others in a description. Also objects that outlive their array.
 */
#include <string.h>

#include "cuda_array.h"
#include "hostile.h"

/* 16 x 4 elements of 4 bytes. */
static struct wire_cuArray3DCreate_v2 plain(struct peer *peer)
{
    return (struct wire_cuArray3DCreate_v2){
        .hArray = peer_handle(peer, WIRE_ARRAY),
        .width = 16,
        .height = 4,
        .format = CU_AD_FORMAT_UNSIGNED_INT32,
        .channels = 1,
    };
}

static uint64_t make_array(struct peer *peer)
{
    const struct wire_cuArray3DCreate_v2 in = plain(peer);

    assert_int_equal(wire_cuArray3DCreate_v2(&peer->channel, &in), CUDA_SUCCESS);
    return in.hArray;
}

static CUresult copy(struct peer *peer, const struct wire_fnArrayCopy *in)
{
    channel_lock(&peer->channel);
    wire_fnArrayCopy(&peer->channel, in);
    channel_unlock(&peer->channel);
    return hostile_deferred(peer);
}

static CUresult texture(struct peer *peer, uint64_t array, uint64_t *ret_handle)
{
    const CUDA_TEXTURE_DESC description = {.flags = 1};
    const struct wire_fnArrayTexture in = {
        .texture = peer_handle(peer, WIRE_TEXTURE),
        .array = array,
        .description = &description,
        .description_size = sizeof(description),
    };
    struct wire_fnArrayTexture_reply out;

    *ret_handle = in.texture;
    return wire_fnArrayTexture(&peer->channel, &in, &out);
}

static void arrays_that_cannot_be(void **state)
{
    struct wire_cuArray3DCreate_v2 in;
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    for (unsigned i = 0; i < 6; i++) {
        in = plain(&peer);
        if (i == 0)
            in.width = UINT64_MAX;
        if (i == 1)
            in.width = in.height = in.depth = 1u << 18;
        if (i == 2)
            in.format = 0x7fffffff;
        if (i == 3)
            in.channels = UINT32_MAX;
        if (i == 4)
            in.flags = UINT32_MAX;
        if (i == 5)
            in.device = 7;
        assert_int_not_equal(wire_cuArray3DCreate_v2(&peer.channel, &in), CUDA_SUCCESS);
    }
    in = plain(&peer);
    in.hArray = peer_handle(&peer, WIRE_STREAM);
    assert_int_not_equal(wire_cuArray3DCreate_v2(&peer.channel, &in), CUDA_SUCCESS);
    make_array(&peer);
    peer_leave(&peer);
}

static void handles_that_are_none(void **state)
{
    struct peer peer;
    uint64_t handle;

    (void)state;
    hostile_attach(&peer);
    uint64_t stream = peer_make_stream(&peer, 1), array = make_array(&peer);
    const uint64_t forged[] = {
        0, 1, UINT64_MAX, stream, array + 1, array + (1ull << 24), hostile.witness.stream};

    for (unsigned i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
        const struct wire_fnArrayCopy in = {.array = forged[i], .hStream = stream};
        const struct wire_cuTexObjectDestroy end = {.texture = forged[i]};
        assert_int_equal(copy(&peer, &in), CUDA_ERROR_INVALID_HANDLE);
        assert_int_equal(texture(&peer, forged[i], &handle), CUDA_ERROR_INVALID_HANDLE);
        channel_lock(&peer.channel);
        wire_cuTexObjectDestroy(&peer.channel, &end);
        channel_unlock(&peer.channel);
        assert_int_equal(hostile_deferred(&peer), CUDA_ERROR_INVALID_HANDLE);
    }
    peer_leave(&peer);
}

static void copies_out_of_bounds(void **state)
{
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    const struct wire_fnArrayCopy good = {
        .array = make_array(&peer),
        .address = peer.offer.staging_address,
        .pitch = 64,
        .slice_rows = 4,
        .width = 64,
        .height = 4,
        .depth = 1,
        .into = 1,
        .hStream = peer_make_stream(&peer, 1),
    };
    struct wire_fnArrayCopy bad[10];

    for (unsigned i = 0; i < 10; i++)
        bad[i] = good;
    bad[0].x = 4;
    bad[1].y = 1;
    bad[2].z = 1;
    bad[3].x = UINT64_MAX - 3;
    bad[4].width = 62;
    bad[5].height = UINT64_MAX;
    bad[6].address = hostile.witness.memory;
    bad[7].address = (uintptr_t)&peer;
    bad[8].pitch = UINT64_MAX / 2;
    bad[9].address = UINT64_MAX - 16;
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(copy(&peer, &bad[i]), CUDA_ERROR_INVALID_VALUE);
        bad[i].into = 0;
        assert_int_equal(copy(&peer, &bad[i]), CUDA_ERROR_INVALID_VALUE);
    }
    assert_int_equal(copy(&peer, &good), CUDA_SUCCESS);
    peer_leave(&peer);
}

static CUresult memory_texture(struct peer *peer, uint64_t address, uint64_t width, uint64_t height,
                               uint64_t pitch)
{
    const CUDA_TEXTURE_DESC description = {.flags = 1};
    const struct wire_fnMemoryTexture in = {
        .texture = peer_handle(peer, WIRE_TEXTURE),
        .address = address,
        .format = CU_AD_FORMAT_UNSIGNED_INT32,
        .channels = 1,
        .width = width,
        .height = height,
        .pitch = pitch,
        .description = &description,
        .description_size = sizeof(description),
    };
    struct wire_fnMemoryTexture_reply out;

    return wire_fnMemoryTexture(&peer->channel, &in, &out);
}

static void memory_of_others(void **state)
{
    const uint64_t size = 2u << 20;
    uint64_t own;
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    assert_int_equal(peer_make_granule(&peer, size, &own), CUDA_SUCCESS);
    const uint64_t foreign[] = {0, 4096, (uintptr_t)&peer & ~511ull, hostile.witness.memory,
                                own + size};

    for (unsigned i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        assert_int_equal(memory_texture(&peer, foreign[i], 512, 0, 0), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(memory_texture(&peer, foreign[i], 8, 8, 32), CUDA_ERROR_INVALID_VALUE);
    }
    assert_int_equal(memory_texture(&peer, own, size + 4, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(memory_texture(&peer, own, 128, size / 512 + 1, 512),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(memory_texture(&peer, own, 128, UINT64_MAX, UINT64_MAX),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(memory_texture(&peer, own, UINT64_MAX / 2, 1, 512), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(memory_texture(&peer, own, size, 0, 0), CUDA_SUCCESS);
    assert_int_equal(memory_texture(&peer, own, 128, 8, 512), CUDA_SUCCESS);
    peer_leave(&peer);
}

/* The array is gone for the client, not for the object on it; whichever goes last ends it. */
static void arrays_that_go_first(void **state)
{
    struct wire_cuArrayDestroy end;
    uint64_t handle[2];
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    end.hArray = make_array(&peer);
    assert_int_equal(texture(&peer, end.hArray, &handle[0]), CUDA_SUCCESS);
    assert_int_equal(texture(&peer, end.hArray, &handle[1]), CUDA_SUCCESS);
    channel_lock(&peer.channel);
    wire_cuArrayDestroy(&peer.channel, &end);
    channel_unlock(&peer.channel);
    assert_int_equal(hostile_deferred(&peer), CUDA_SUCCESS);
    const struct wire_cuTexObjectDestroy object = {.texture = handle[0]};
    channel_lock(&peer.channel);
    wire_cuTexObjectDestroy(&peer.channel, &object);
    channel_unlock(&peer.channel);
    assert_int_equal(hostile_deferred(&peer), CUDA_SUCCESS);
    assert_int_equal(texture(&peer, end.hArray, &handle[0]), CUDA_ERROR_INVALID_HANDLE);
    peer_leave(&peer);
}

/* The server may hand out an array again, but not what was in it. */
static void arrays_come_empty(void **state)
{
    (void)state;
    for (unsigned turn = 0; turn < 3; turn++) {
        struct peer peer;
        hostile_attach(&peer);
        struct wire_cuArray3DCreate_v2 like = plain(&peer);
        like.format = CU_AD_FORMAT_FLOAT; /* as no other test has it */
        assert_int_equal(wire_cuArray3DCreate_v2(&peer.channel, &like), CUDA_SUCCESS);
        unsigned char *staging = peer_staging(&peer, 0);
        struct wire_fnArrayCopy in = {
            .array = like.hArray,
            .address = peer.offer.staging_address,
            .pitch = 64,
            .slice_rows = 4,
            .width = 64,
            .height = 4,
            .depth = 1,
            .hStream = peer_make_stream(&peer, 1),
            .seq = 1,
        };
        memset(staging, 0xaa, 256);
        assert_int_equal(copy(&peer, &in), CUDA_SUCCESS);
        assert_true(peer_wait_fence(&peer, 1, 1));
        for (unsigned i = 0; i < 256; i++)
            assert_int_equal(staging[i], 0);
        memset(staging, 0x55, 256);
        in.into = 1;
        in.seq = 2;
        assert_int_equal(copy(&peer, &in), CUDA_SUCCESS);
        assert_true(peer_wait_fence(&peer, 1, 2));
        peer_leave(&peer);
    }
}

/* ---- mipmaps, views, surfaces ---- */

static struct wire_cuMipmappedArrayCreate plain_mipmap(struct peer *peer)
{
    return (struct wire_cuMipmappedArrayCreate){
        .hArray = peer_handle(peer, WIRE_ARRAY),
        .width = 16,
        .height = 4,
        .format = CU_AD_FORMAT_UNSIGNED_INT32,
        .channels = 1,
        .levels = 5,
    };
}

static CUresult level(struct peer *peer, uint64_t array, uint32_t number, uint64_t *ret_handle)
{
    const struct wire_cuMipmappedArrayGetLevel in = {
        .level = peer_handle(peer, WIRE_ARRAY),
        .hMipmappedArray = array,
        .number = number,
    };

    *ret_handle = in.level;
    return wire_cuMipmappedArrayGetLevel(&peer->channel, &in);
}

static CUresult surface(struct peer *peer, uint64_t array)
{
    const struct wire_fnArraySurface in = {
        .surface = peer_handle(peer, WIRE_TEXTURE),
        .array = array,
    };
    struct wire_fnArraySurface_reply out;

    return wire_fnArraySurface(&peer->channel, &in, &out);
}

static void mipmaps_that_cannot_be(void **state)
{
    struct wire_cuMipmappedArrayCreate in;
    uint64_t one, other;
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    const uint32_t levels[] = {0, 6, UINT32_MAX};
    for (unsigned i = 0; i < 3; i++) {
        in = plain_mipmap(&peer);
        in.levels = levels[i];
        assert_int_not_equal(wire_cuMipmappedArrayCreate(&peer.channel, &in), CUDA_SUCCESS);
    }
    in = plain_mipmap(&peer);
    assert_int_equal(wire_cuMipmappedArrayCreate(&peer.channel, &in), CUDA_SUCCESS);
    assert_int_equal(level(&peer, in.hArray, 5, &one), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(level(&peer, in.hArray, UINT32_MAX, &one), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(level(&peer, in.hArray, 2, &one), CUDA_SUCCESS);
    assert_int_equal(level(&peer, one, 0, &other), CUDA_ERROR_INVALID_VALUE);
    peer_leave(&peer);
}

/* What is for plain arrays refuses a whole one with mipmaps; a level is no larger than it is, and
 * keeps the whole. */
static void mipmaps_are_no_arrays(void **state)
{
    struct peer peer;
    uint64_t one;

    (void)state;
    hostile_attach(&peer);
    const struct wire_cuMipmappedArrayCreate whole = plain_mipmap(&peer);
    assert_int_equal(wire_cuMipmappedArrayCreate(&peer.channel, &whole), CUDA_SUCCESS);
    struct wire_fnArrayCopy in = {
        .array = whole.hArray,
        .address = peer.offer.staging_address,
        .width = 64,
        .height = 1,
        .depth = 1,
        .into = 1,
        .hStream = peer_make_stream(&peer, 1),
    };
    assert_int_equal(copy(&peer, &in), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(surface(&peer, whole.hArray), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(level(&peer, whole.hArray, 1, &one), CUDA_SUCCESS);
    assert_int_equal(surface(&peer, one), CUDA_ERROR_INVALID_VALUE);
    const struct wire_cuArrayDestroy end = {.hArray = whole.hArray};
    channel_lock(&peer.channel);
    wire_cuArrayDestroy(&peer.channel, &end);
    channel_unlock(&peer.channel);
    in.array = one;
    assert_int_equal(copy(&peer, &in), CUDA_ERROR_INVALID_VALUE);
    in.width = 32;
    assert_int_equal(copy(&peer, &in), CUDA_SUCCESS);
    peer_leave(&peer);
}

static void views_of_what_is_not_there(void **state)
{
    struct cuda_texture_words words = {
        .texture = {.flags = 1},
        .view = {.format = CU_RES_VIEW_FORMAT_UINT_1X32, .width = 16, .height = 4},
    };
    struct wire_fnArrayTexture_reply out;
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    for (unsigned i = 0; i < 6; i++) {
        struct cuda_texture_words sent = words;
        const struct wire_fnArrayTexture in = {
            .texture = peer_handle(&peer, WIRE_TEXTURE),
            .array = make_array(&peer),
            .description = &sent,
            .description_size = i == 5 ? sizeof(sent) - 1 : sizeof(sent),
        };
        if (i == 0)
            sent.view.width = 1u << 20;
        if (i == 1)
            sent.view.format = CU_RES_VIEW_FORMAT_UINT_4X32;
        if (i == 2)
            sent.view.lastMipmapLevel = 1;
        if (i == 3)
            sent.view.lastLayer = UINT32_MAX;
        assert_int_equal(wire_fnArrayTexture(&peer.channel, &in, &out),
                         i == 4 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    }
    peer_leave(&peer);
}

/* ---- references of modules ---- */

static const char reference_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                    ".global .texref sampled;\n.global .surfref drawn;\n"
                                    ".visible .entry none()\n{\nret;\n}\n";
static const CUDA_TEXTURE_DESC reference_description = {.flags = 1};

static uint64_t load_references(struct peer *peer)
{
    uint64_t module;

    assert_int_equal(peer_load_module(peer, reference_ptx, sizeof(reference_ptx), &module), 0);
    return module;
}

static CUresult bind_array(struct peer *peer, uint64_t module, uint64_t array, const char *name,
                           uint32_t size)
{
    const struct wire_fnArrayReference in = {.library = module,
                                             .array = array,
                                             .description = &reference_description,
                                             .description_size = size,
                                             .name = name};

    return wire_fnArrayReference(&peer->channel, &in);
}

static CUresult bind_memory(struct peer *peer, uint64_t module, uint64_t address, uint64_t width,
                            uint64_t height, uint64_t pitch)
{
    const struct wire_fnMemoryReference in = {.library = module,
                                              .address = address,
                                              .format = CU_AD_FORMAT_UNSIGNED_INT32,
                                              .channels = 1,
                                              .width = width,
                                              .height = height,
                                              .pitch = pitch,
                                              .description = &reference_description,
                                              .description_size = sizeof(reference_description),
                                              .name = "sampled"};

    return wire_fnMemoryReference(&peer->channel, &in);
}

static void references_that_are_none(void **state)
{
    const uint32_t size = sizeof(reference_description);
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    uint64_t module = load_references(&peer), array = make_array(&peer);

    assert_int_equal(bind_array(&peer, module + 1, array, "sampled", size),
                     CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(bind_array(&peer, array, array, "sampled", size), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(bind_array(&peer, module, module, "sampled", size), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(bind_array(&peer, module, array, "none", size), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(bind_array(&peer, module, array, "drawn", size), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(bind_array(&peer, module, array, "sampled", size - 4),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(bind_array(&peer, module, array, "sampled", 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(bind_array(&peer, module, array, "sampled", size), CUDA_SUCCESS);
    peer_leave(&peer);
}

static void references_on_memory_of_others(void **state)
{
    const uint64_t size = 2u << 20;
    struct peer peer;
    uint64_t own;

    (void)state;
    hostile_attach(&peer);
    uint64_t module = load_references(&peer);
    assert_int_equal(peer_make_granule(&peer, size, &own), CUDA_SUCCESS);
    const uint64_t foreign[] = {0, 4096, hostile.witness.memory, own + size};

    for (unsigned i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        assert_int_equal(bind_memory(&peer, module, foreign[i], 512, 0, 0),
                         CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(bind_memory(&peer, module, foreign[i], 8, 8, 32),
                         CUDA_ERROR_INVALID_VALUE);
    }
    assert_int_equal(bind_memory(&peer, module, own, size + 4, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(bind_memory(&peer, module, own, 128, UINT64_MAX, UINT64_MAX),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(bind_memory(&peer, module, own, size, 0, 0), CUDA_SUCCESS);
    peer_leave(&peer);
}

/* The array of a reference ends with the module, or when the reference is bound anew. */
static void references_to_arrays_that_go_first(void **state)
{
    const uint32_t size = sizeof(reference_description);
    struct wire_cuArrayDestroy end;
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    uint64_t module = load_references(&peer);
    for (unsigned i = 0; i < 3; i++) {
        end.hArray = make_array(&peer);
        assert_int_equal(bind_array(&peer, module, end.hArray, "sampled", size), CUDA_SUCCESS);
        assert_int_equal(bind_array(&peer, module, end.hArray, "sampled", size), CUDA_SUCCESS);
        channel_lock(&peer.channel);
        wire_cuArrayDestroy(&peer.channel, &end);
        channel_unlock(&peer.channel);
        assert_int_equal(hostile_deferred(&peer), CUDA_SUCCESS);
    }
    assert_int_equal(bind_array(&peer, module, end.hArray, "sampled", size),
                     CUDA_ERROR_INVALID_HANDLE);
    peer_leave(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(arrays_that_cannot_be),
        HOSTILE_CASE(handles_that_are_none),
        HOSTILE_CASE(copies_out_of_bounds),
        HOSTILE_CASE(memory_of_others),
        HOSTILE_CASE(arrays_that_go_first),
        HOSTILE_CASE(mipmaps_that_cannot_be),
        HOSTILE_CASE(mipmaps_are_no_arrays),
        HOSTILE_CASE(views_of_what_is_not_there),
        HOSTILE_CASE(arrays_come_empty),
        HOSTILE_CASE(references_that_are_none),
        HOSTILE_CASE(references_on_memory_of_others),
        HOSTILE_CASE(references_to_arrays_that_go_first),
    };

    return HOSTILE_MAIN(tests);
}
