/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vector addition by hand, through the wire.
 */
#include "witness.h"

#include <string.h>

#include "fd.h"
#include "region.h"
#include "shm.h"
#include "sock.h"

#define ELEMENTS 4096u
#define BYTES (ELEMENTS * sizeof(float))
#define GRANULE (2u << 20)

const char witness_ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry vector_add(.param .u64 psum, .param .u64 pa, .param .u64 pb, .param .u32 pn)\n"
    "{\n"
    "    .reg .pred %p<2>;\n    .reg .b32 %r<6>;\n    .reg .b64 %rd<11>;\n    .reg .f32 %f<4>;\n"
    "    ld.param.u64 %rd1, [psum];\n    ld.param.u64 %rd2, [pa];\n"
    "    ld.param.u64 %rd3, [pb];\n    ld.param.u32 %r2, [pn];\n"
    "    mov.u32 %r3, %ctaid.x;\n    mov.u32 %r4, %ntid.x;\n    mov.u32 %r5, %tid.x;\n"
    "    mad.lo.s32 %r1, %r3, %r4, %r5;\n"
    "    setp.ge.s32 %p1, %r1, %r2;\n    @%p1 bra DONE;\n"
    "    mul.wide.s32 %rd4, %r1, 4;\n    add.s64 %rd5, %rd2, %rd4;\n    add.s64 %rd6, %rd3, %rd4;\n"
    "    ld.global.f32 %f1, [%rd5];\n    ld.global.f32 %f2, [%rd6];\n"
    "    add.f32 %f3, %f1, %f2;\n    add.s64 %rd7, %rd1, %rd4;\n    st.global.f32 [%rd7], %f3;\n"
    "DONE:\n    ret;\n}\n"
    ".visible .entry spin(.param .u32 iterations)\n"
    "{\n"
    "    .reg .pred %p<2>;\n    .reg .b32 %r<3>;\n"
    "    ld.param.u32 %r1, [iterations];\n    mov.u32 %r2, 0;\n"
    "LOOP:\n    add.u32 %r2, %r2, 1;\n    setp.lt.u32 %p1, %r2, %r1;\n    @%p1 bra LOOP;\n"
    "    ret;\n}\n"
    ".visible .entry poke(.param .u64 address)\n"
    "{\n"
    "    .reg .b64 %rd<2>;\n    .reg .b32 %r<2>;\n"
    "    ld.param.u64 %rd1, [address];\n    mov.u32 %r1, 1;\n    st.global.u32 [%rd1], %r1;\n"
    "    ret;\n}\n";

uint64_t peer_make_stream(struct peer *peer, uint32_t word)
{
    const struct wire_cuStreamCreateWithPriority in = {.hStream = peer_handle(peer, WIRE_STREAM),
                                                       .word = word};

    channel_lock(&peer->channel);
    CUresult result = wire_cuStreamCreateWithPriority(&peer->channel, &in);
    channel_unlock(&peer->channel);
    return result == CUDA_SUCCESS ? in.hStream : 0;
}

CUresult peer_load_module(struct peer *peer, const void *image, uint64_t size, uint64_t *ret_module)
{
    const struct wire_cuLibraryLoadData in = {
        .library = peer_handle(peer, WIRE_MODULE), .blob = peer->next_handle, .image_size = size};
    const struct socket_message message = {SOCKET_BLOB, in.blob, size};
    struct wire_cuLibraryLoadData_reply out = {0};
    _cleanup_fd_ int fd = -1;

    if (shm_create_read_only("image", image, size, &fd) ||
        sock_send(peer->socket, &message, sizeof(message), &fd, 1))
        return CUDA_ERROR_MPS_RPC_FAILURE;
    *ret_module = in.library;
    return wire_cuLibraryLoadData(&peer->channel, &in, &out);
}

CUresult peer_find_function(struct peer *peer, uint64_t module, const char *name,
                            uint64_t *ret_function)
{
    const struct wire_cuLibraryGetKernel in = {
        .library = module, .f = peer_handle(peer, WIRE_FUNCTION), .name = name};
    struct wire_cuLibraryGetKernel_reply out = {0};

    *ret_function = in.f;
    return wire_cuLibraryGetKernel(&peer->channel, &in, &out);
}

static CUresult receive(struct peer *peer, uint32_t kind, size_t least, uint64_t address,
                        int *ret_fd)
{
    struct socket_message message;
    size_t count = 0;
    ssize_t size =
        sock_recv(peer->socket, &message, sizeof(message), ret_fd, 1, &count, TIMEOUT_MS);

    return size == (ssize_t)sizeof(message) && count >= least && message.kind == kind &&
                   message.value == address
               ? CUDA_SUCCESS
               : CUDA_ERROR_MPS_RPC_FAILURE;
}

CUresult peer_take_granule(struct peer *peer, uint64_t size, uint64_t *ret_address, int *ret_fd)
{
    const struct wire_fnGranuleCreate in = {.size = size, .room = size};
    struct wire_fnGranuleCreate_reply out = {0};
    CUresult result = wire_fnGranuleCreate(&peer->channel, &in, &out);

    *ret_address = out.address;
    return result != CUDA_SUCCESS ? result : receive(peer, SOCKET_GRANULE, 0, out.address, ret_fd);
}

CUresult peer_make_granule(struct peer *peer, uint64_t size, uint64_t *ret_address)
{
    _cleanup_fd_ int fd = -1;

    return peer_take_granule(peer, size, ret_address, &fd);
}

CUresult peer_move_granule(struct peer *peer, uint64_t address, bool host)
{
    const struct wire_fnGranuleMove in = {.host = host, .address = address};
    CUresult result = wire_fnGranuleMove(&peer->channel, &in);
    _cleanup_fd_ int fd = -1;

    return result != CUDA_SUCCESS ? result : receive(peer, SOCKET_GRANULE, 0, address, &fd);
}

CUresult peer_bring_host_memory(struct peer *peer, int fd, uint64_t size, uint64_t *ret_address)
{
    const struct socket_message message = {.kind = SOCKET_BLOB, .id = 80, .value = size};
    const struct wire_fnHostGranuleBring in = {.blob = 80, .size = size};
    struct wire_fnHostGranuleBring_reply out = {0};

    if (sock_send(peer->socket, &message, sizeof(message), &fd, 1))
        return CUDA_ERROR_MPS_RPC_FAILURE;
    CUresult result = wire_fnHostGranuleBring(&peer->channel, &in, &out);
    *ret_address = out.address;
    return result;
}

CUresult peer_make_host_granule(struct peer *peer, uint64_t size, uint64_t *ret_address,
                                int *ret_fd)
{
    const struct wire_fnHostGranuleCreate in = {.size = size};
    struct wire_fnHostGranuleCreate_reply out = {0};
    CUresult result = wire_fnHostGranuleCreate(&peer->channel, &in, &out);

    *ret_address = out.address;
    if (result != CUDA_SUCCESS)
        return result;
    if (out.address)
        return receive(peer, SOCKET_HOST_GRANULE, 1, out.address, ret_fd);
    if (shm_create("test", size, ret_fd) || (out.populate && shm_populate(*ret_fd, size)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return peer_bring_host_memory(peer, *ret_fd, size, ret_address);
}

bool witness_start(struct witness *witness, const char *path)
{
    memset(witness, 0, sizeof(*witness));
    return peer_attach(&witness->peer, path) && witness_begin(witness);
}

bool witness_begin(struct witness *witness)
{
    struct peer *peer = &witness->peer;

    witness->stream = peer_make_stream(peer, 0);
    return witness->stream &&
           !peer_load_module(peer, witness_ptx, strlen(witness_ptx) + 1, &witness->module) &&
           !peer_find_function(peer, witness->module, "vector_add", &witness->function) &&
           !peer_make_granule(peer, GRANULE, &witness->memory);
}

static bool copy(struct witness *witness, uint64_t dst, uint64_t src, uint64_t bytes, uint32_t seq)
{
    const struct wire_cuMemcpyAsync in = {
        .dst = dst, .src = src, .ByteCount = bytes, .hStream = witness->stream, .seq = seq};

    return wire_cuMemcpyAsync(&witness->peer.channel, &in) == CUDA_SUCCESS;
}

static bool launch(struct witness *witness)
{
    struct {
        uint64_t sum, a, b;
        uint32_t n;
    } params = {witness->memory + 2 * BYTES, witness->memory, witness->memory + BYTES, ELEMENTS};
    const struct wire_cuLaunchKernelEx in = {.f = witness->function,
                                             .shape = {ELEMENTS / 128, 1, 1, 128, 1, 1},
                                             .hStream = witness->stream,
                                             .params = &params,
                                             .params_size = 28};

    return peer_launch(&witness->peer, &in);
}

static bool submit(struct witness *witness)
{
    uint64_t staging = witness->peer.offer.staging_address;

    channel_lock(&witness->peer.channel);
    bool sent =
        copy(witness, witness->memory, staging, 2 * BYTES, 0) && launch(witness) &&
        copy(witness, staging + 2 * BYTES, witness->memory + 2 * BYTES, BYTES, ++witness->seq);
    channel_unlock(&witness->peer.channel);
    return sent;
}

bool peer_poke(struct peer *peer, uint64_t address)
{
    uint64_t module, function, stream = peer_make_stream(peer, 1);

    if (peer_load_module(peer, witness_ptx, strlen(witness_ptx) + 1, &module) ||
        peer_find_function(peer, module, "poke", &function))
        return false;
    const struct wire_cuLaunchKernelEx in = {.f = function,
                                             .shape = {1, 1, 1, 1, 1, 1},
                                             .hStream = stream,
                                             .params = &address,
                                             .params_size = sizeof(address)};
    channel_lock(&peer->channel);
    bool sent = peer_launch(peer, &in);
    channel_unlock(&peer->channel);
    return sent && peer_fence(peer, stream, 1);
}

bool witness_is_well(struct witness *witness)
{
    float *a = peer_staging(&witness->peer, 0);
    float *b = a + ELEMENTS, *sum = b + ELEMENTS;

    witness->round++;
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        a[i] = (float)(i + witness->round);
        b[i] = (float)(3 * i);
        sum[i] = -1;
    }
    if (!submit(witness) || !peer_wait_fence(&witness->peer, 0, witness->seq))
        return false;
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        if (sum[i] != (float)(4 * i + witness->round))
            return false;
    }
    return channel_error(&witness->peer.channel) == CUDA_SUCCESS &&
           channel_take_deferred_error(&witness->peer.channel) == CUDA_SUCCESS;
}

void witness_stop(struct witness *witness)
{
    peer_leave(&witness->peer);
}
