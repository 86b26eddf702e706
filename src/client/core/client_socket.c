/* SPDX-License-Identifier: Apache-2.0 */
/* Sending and receiving descriptors; see client_socket.h. */
#include "client_socket.h"

#include <errno.h>
#include <stdatomic.h>

#include "client.h"
#include "client_log.h"
#include "descriptor_limit.h"
#include "fd.h"
#include "sock.h"

#define RECEIVE_TIMEOUT_MS 10000

CUresult client_send_descriptor(int fd, uint64_t size, uint32_t *ret_blob)
{
    struct socket_message message = {.kind = SOCKET_BLOB, .value = size};

    message.id = *ret_blob =
        atomic_fetch_add_explicit(&client->next_blob, 1, memory_order_relaxed) + 1;
    return sock_send(client->socket, &message, sizeof(message), &fd, 1) < 0
               ? CUDA_ERROR_MPS_RPC_FAILURE
               : CUDA_SUCCESS;
}

CUresult client_descriptor_result(uint64_t connection, CUresult result)
{
    return result != CUDA_SUCCESS && client->socket_inode != connection ? CUDA_ERROR_NOT_FOUND
                                                                        : result;
}

/* The bytes of the next message, and its descriptor or -1. A program may have as many open as it
 * may. Then the kernel closes that of the message, and the rest is there. */
static ssize_t receive_next(struct socket_message *ret_message, int *ret_fd)
{
    size_t fd_count;

    *ret_message = (struct socket_message){0};
    ssize_t bytes = sock_recv(client->socket, ret_message, sizeof(*ret_message), ret_fd, 1,
                              &fd_count, RECEIVE_TIMEOUT_MS);

    if (bytes < 0 || !fd_count)
        *ret_fd = -1;
    return bytes == -EPROTO && descriptors_are_short(1) ? (ssize_t)sizeof(*ret_message) : bytes;
}

static CUresult fail(ssize_t bytes)
{
    if (descriptors_are_short(1))
        client_log(
            "the program has no descriptor left: its limit of open files (ulimit -n) is %llu",
            (unsigned long long)descriptor_limit());
    else
        client_log("the server did not send the expected descriptor (%zd bytes came)", bytes);
    return CUDA_ERROR_MPS_RPC_FAILURE;
}

/* The next message with that content, which has at least so many descriptors: 0 or 1. That of
 * variables may have come too late for the move that it belongs to. */
static CUresult receive_message(uint32_t kind, uint64_t value, size_t least, int *ret_fd)
{
    struct socket_message message;
    int fd = -1;
    ssize_t bytes;

    do {
        fd_close(&fd);
        bytes = receive_next(&message, &fd);
    } while (bytes == sizeof(message) && message.kind == SOCKET_VARIABLES);
    if (bytes == sizeof(message) && (fd >= 0 || !least) && message.kind == kind &&
        message.value == value) {
        *ret_fd = fd;
        return CUDA_SUCCESS;
    }
    fd_close(&fd);
    return fail(bytes);
}

CUresult client_receive_variables(int *ret_fd, uint64_t *ret_size, uint32_t *ret_device_change)
{
    struct socket_message message;
    int fd = -1;

    if (receive_next(&message, &fd) == sizeof(message) && message.kind == SOCKET_VARIABLES &&
        (fd >= 0) == (message.value > 0)) {
        *ret_fd = fd;
        *ret_size = message.value;
        *ret_device_change = message.id;
        return CUDA_SUCCESS;
    }
    fd_close(&fd);
    return CUDA_ERROR_MPS_RPC_FAILURE;
}

CUresult client_receive_descriptor(uint32_t kind, uint64_t value, int *ret_fd)
{
    return receive_message(kind, value, 1, ret_fd);
}

CUresult client_receive_granule(uint64_t address, int *ret_fd)
{
    return receive_message(SOCKET_GRANULE, address, 0, ret_fd);
}
