/* SPDX-License-Identifier: Apache-2.0 */
/* Clients whose modules come from no blob or are none, and that name kernels that do not exist. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile.h"
#include "shm.h"
#include "sock.h"

static CUresult load_from(struct peer *peer, int fd, uint64_t said, uint64_t asked)
{
    const struct socket_message message = {SOCKET_BLOB, 9, said};
    const struct wire_cuLibraryLoadData in = {
        .library = peer_handle(peer, WIRE_MODULE), .blob = 9, .image_size = asked};
    struct wire_cuLibraryLoadData_reply out = {0};

    assert_int_equal(sock_send(peer->socket, &message, sizeof(message), &fd, 1), 0);
    return wire_cuLibraryLoadData(&peer->channel, &in, &out);
}

static void descriptors_that_are_no_blobs(void **state)
{
    struct peer peer;
    int pair[2], unsealed = memfd_create("unsealed", MFD_CLOEXEC), sealed = -1;
    int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);

    (void)state;
    hostile_attach(&peer);
    assert_int_equal(pipe(pair), 0);
    assert_int_equal(ftruncate(unsealed, 4096), 0);
    assert_int_equal(shm_create_read_only("short", "x", 1, &sealed), 0);
    assert_int_not_equal(load_from(&peer, zero, 4096, 4096), CUDA_SUCCESS);
    assert_int_not_equal(load_from(&peer, pair[0], 4096, 4096), CUDA_SUCCESS);
    assert_int_not_equal(load_from(&peer, unsealed, 4096, 4096), CUDA_SUCCESS);
    assert_int_not_equal(load_from(&peer, sealed, 4096, 4096), CUDA_SUCCESS);
    assert_int_not_equal(load_from(&peer, sealed, 1, 4096), CUDA_SUCCESS);
    assert_int_not_equal(load_from(&peer, sealed, UINT64_MAX, UINT64_MAX), CUDA_SUCCESS);
    assert_int_not_equal(load_from(&peer, sealed, 0, 0), CUDA_SUCCESS);
    assert_true(hostile_is_served(&peer));
    close(pair[0]);
    close(pair[1]);
    close(unsealed);
    close(sealed);
    close(zero);
    peer_leave(&peer);
}

static void blob_that_never_comes(void **state)
{
    const struct wire_cuLibraryLoadData in = {.library = 1ull << 48, .blob = 1, .image_size = 10};
    struct wire_cuLibraryLoadData_reply out = {0};
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    assert_int_equal(wire_cuLibraryLoadData(&peer.channel, &in, &out), CUDA_ERROR_INVALID_VALUE);
    assert_true(hostile_is_served(&peer));
    peer_leave(&peer);
}

static void images_that_the_server_does_not_have(void **state)
{
    const struct wire_fnImageFind wanted = {.key = 1, .size = UINT64_MAX};
    const struct wire_cuLibraryLoadData in = {.library = 1ull << 48, .image = 77, .image_size = 10};
    struct wire_fnImageFind_reply found = {0};
    struct wire_cuLibraryLoadData_reply out = {0};
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    assert_int_equal(wire_fnImageFind(&peer.channel, &wanted, &found), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(wire_cuLibraryLoadData(&peer.channel, &in, &out), CUDA_ERROR_NOT_FOUND);
    assert_true(hostile_is_served(&peer));
    peer_leave(&peer);
}

static void images_that_are_none(void **state)
{
    unsigned char container[256] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 0xff, 0xff, 0xff, 0x7f};
    unsigned char elf[256] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    struct peer peer;
    uint64_t module;

    (void)state;
    hostile_attach(&peer);
    assert_int_equal(peer_load_module(&peer, container, sizeof(container), &module),
                     CUDA_ERROR_INVALID_IMAGE);
    memset(elf + 16, 0xff, 200);
    assert_int_equal(peer_load_module(&peer, elf, sizeof(elf), &module), CUDA_ERROR_INVALID_IMAGE);
    assert_int_equal(peer_load_module(&peer, "hello", 5, &module), CUDA_ERROR_INVALID_IMAGE);
    assert_int_not_equal(peer_load_module(&peer, ".version x\n{", 12, &module), CUDA_SUCCESS);
    assert_true(hostile_is_served(&peer));
    peer_leave(&peer);
}

static void short_parameters(void **state)
{
    struct peer peer;
    uint64_t module, function;

    (void)state;
    hostile_attach(&peer);
    uint64_t stream = peer_make_stream(&peer, 3);
    assert_int_equal(peer_load_module(&peer, witness_ptx, strlen(witness_ptx) + 1, &module), 0);
    assert_int_equal(peer_find_function(&peer, module, "vector_add", &function), 0);
    const struct wire_cuLaunchKernelEx in = {.f = function,
                                             .shape = {1, 1, 1, 1, 1, 1},
                                             .hStream = stream,
                                             .params = "abcd",
                                             .params_size = 4};
    channel_lock(&peer.channel);
    assert_true(peer_launch(&peer, &in));
    channel_unlock(&peer.channel);
    assert_true(peer_fence(&peer, stream, 1));
    assert_true(peer_wait_fence(&peer, 3, 1)); /* refused, and still fenced */
    assert_int_equal(hostile_deferred(&peer), CUDA_ERROR_INVALID_VALUE);
    peer_leave(&peer);
}

static void enter(struct peer *peer, uint64_t module, uint64_t function, uint32_t kernel)
{
    const struct wire_fnFunctionEnter in = {.library = module, .f = function, .kernel = kernel};

    channel_lock(&peer->channel);
    wire_fnFunctionEnter(&peer->channel, &in);
    channel_unlock(&peer->channel);
}

/* A client that names a kernel which the server never announced gets no function, and one function
 * is not entered twice. */
static void kernels_that_are_not_known(void **state)
{
    struct wire_cuFuncGetAttribute ask = {0};
    struct wire_cuFuncGetAttribute_reply out = {0};
    uint64_t module, function;
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    assert_int_equal(peer_load_module(&peer, witness_ptx, strlen(witness_ptx) + 1, &module), 0);
    assert_int_equal(peer_find_function(&peer, module, "vector_add", &function), 0);
    ask.f = peer_handle(&peer, WIRE_FUNCTION);
    enter(&peer, module, ask.f, UINT32_MAX);
    enter(&peer, module, ask.f, 1u << 20);
    assert_int_equal(wire_cuFuncGetAttribute(&peer.channel, &ask, &out), CUDA_ERROR_INVALID_HANDLE);
    enter(&peer, module, function, 0);
    enter(&peer, module + 1, ask.f, 0);
    enter(&peer, module, ask.f, 0);
    assert_int_equal(wire_cuFuncGetAttribute(&peer.channel, &ask, &out), CUDA_SUCCESS);
    assert_true(hostile_is_served(&peer));
    peer_leave(&peer);
}

/* Only a library that is the client's alone can be joined, and on another device. */
static void libraries_that_can_not_be_joined(void **state)
{
    static const char shared[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                                 ".visible .entry k()\n{\n    ret;\n}\n";
    static const char own[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                              ".global .attribute(.managed) .align 4 .u32 a;\n"
                              ".visible .entry k()\n{\n    ret;\n}\n";
    const char *const images[] = {shared, own};
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    for (unsigned i = 0; i < 2; i++) {
        struct wire_fnLibraryJoin in = {.library = peer_handle(&peer, WIRE_MODULE), .device = 77};

        assert_int_equal(peer_load_module(&peer, images[i], strlen(images[i]), &in.twin),
                         CUDA_SUCCESS);
        assert_int_equal(wire_fnLibraryJoin(&peer.channel, &in), CUDA_ERROR_INVALID_DEVICE);
        in.device = 0;
        assert_int_equal(wire_fnLibraryJoin(&peer.channel, &in), CUDA_ERROR_INVALID_VALUE);
    }
    assert_true(hostile_is_served(&peer));
    peer_leave(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(descriptors_that_are_no_blobs),        HOSTILE_CASE(blob_that_never_comes),
        HOSTILE_CASE(images_that_the_server_does_not_have), HOSTILE_CASE(images_that_are_none),
        HOSTILE_CASE(libraries_that_can_not_be_joined),     HOSTILE_CASE(short_parameters),
        HOSTILE_CASE(kernels_that_are_not_known),
    };

    return HOSTILE_MAIN(tests);
}
