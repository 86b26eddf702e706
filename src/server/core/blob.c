/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client sends a blob before the command that names it, but its threads may overtake each other.
 * So blobs that no command has asked for yet are kept, up to a limit.
 */
#include "blob.h"

#include <errno.h>
#include <stdlib.h>

#include "attach.h"
#include "fd.h"
#include "shm.h"
#include "sock.h"

#define BLOBS_MAX 32u
#define BLOB_TIMEOUT_MS 2000

struct blob {
    struct list link;
    uint32_t id;
    uint64_t size;
    int fd;
};

struct session_blobs {
    struct list list; /* struct blob: received, and not asked for yet */
    unsigned count;
};

int session_blobs_init(struct session *session)
{
    session->blobs = calloc(1, sizeof(*session->blobs));
    if (!session->blobs)
        return -ENOMEM;
    list_init(&session->blobs->list);
    return 0;
}

static void blob_destroy(struct session *session, struct blob *blob)
{
    list_remove(&blob->link);
    session->blobs->count--;
    fd_close(&blob->fd);
    free(blob);
}

static struct blob *blob_find(struct session *session, uint32_t id)
{
    list_for_each (struct blob, blob, &session->blobs->list, link) {
        if (blob->id == id)
            return blob;
    }
    return NULL;
}

/* Takes `fd` over. */
static bool blob_keep(struct session *session, const struct socket_message *message, int fd)
{
    struct blob *blob = session->blobs->count < BLOBS_MAX ? calloc(1, sizeof(*blob)) : NULL;

    if (!blob) {
        fd_close(&fd);
        return false;
    }
    blob->id = message->id;
    blob->size = message->value;
    blob->fd = fd;
    list_append(&session->blobs->list, &blob->link);
    session->blobs->count++;
    return true;
}

/* Reads one message from the socket: false when there is none, or when it is not a blob. */
static bool blob_receive(struct session *session)
{
    struct socket_message message;
    int fd = -1;
    size_t fds = 0;
    ssize_t size =
        sock_recv(session->socket, &message, sizeof(message), &fd, 1, &fds, BLOB_TIMEOUT_MS);

    if (size == (ssize_t)sizeof(message) && fds == 1 && message.kind == SOCKET_BLOB)
        return blob_keep(session, &message, fd);
    if (fds)
        fd_close(&fd);
    return false;
}

static CUresult blob_check(struct session *session, const struct blob *blob, uint64_t size)
{
    if (!size || size > BLOB_SIZE_MAX) {
        session_log_error(session, "blob %u: %llu bytes, the limit is %llu", blob->id,
                          (unsigned long long)size, BLOB_SIZE_MAX);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (blob->size != size || shm_check(blob->fd, size)) {
        session_log_error(session, "blob %u is not a sealed memory file of %llu bytes", blob->id,
                          (unsigned long long)size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static struct blob *blob_await(struct session *session, uint32_t id)
{
    struct blob *blob = blob_find(session, id);

    while (!blob && blob_receive(session))
        blob = blob_find(session, id);
    if (!blob)
        session_log_error(session, "blob %u did not arrive", id);
    return blob;
}

CUresult blob_take_fd(struct session *session, uint32_t id, int *ret_fd)
{
    struct blob *blob = blob_await(session, id);

    if (!blob)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_fd = fd_steal(&blob->fd);
    blob_destroy(session, blob);
    return CUDA_SUCCESS;
}

CUresult blob_take(struct session *session, uint32_t id, uint64_t size, int *ret_fd)
{
    struct blob *blob = blob_await(session, id);

    if (!blob)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = blob_check(session, blob, size);
    if (result == CUDA_SUCCESS)
        *ret_fd = fd_steal(&blob->fd);
    blob_destroy(session, blob);
    return result;
}

void blob_drop_all(struct session *session)
{
    list_for_each_safe (struct blob, blob, &session->blobs->list, link)
        blob_destroy(session, blob);
}

void session_blobs_fini(struct session *session)
{
    if (session->blobs)
        blob_drop_all(session);
    free(session->blobs);
}
