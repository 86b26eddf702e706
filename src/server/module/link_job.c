/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's linker, for clients. The driver keeps pointers to its log buffers, so the job owns
 * them; each reply contains their contents.
 */
#include "link_job.h"

#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "blob.h"
#include "cleanup.h"
#include "fd.h"
#include "jit_pairs.h"
#include "module_state.h"
#include "server_dispatch.h"
#include "shm.h"
#include "sock.h"

/* Limit of one client's jobs at a time. */
#define SESSION_LINKS_MAX 32u

#define LOG_MAX 4000

/* Of the options, the last five are the server's own. */
#define OPTIONS_MAX (JIT_PAIRS_MAX + 5)

struct link {
    const struct device *device;
    CUlinkState state;
    uint64_t bytes; /* of its inputs */
    CUjit_option options[OPTIONS_MAX];
    void *values[OPTIONS_MAX];
    unsigned count;
    unsigned wall_time; /* the index of CU_JIT_WALL_TIME */
    char info[LOG_MAX], error[LOG_MAX];
};

void link_destroy(struct session *session, struct link *link)
{
    if (!link)
        return;
    session->modules->links--;
    if (link->state && session_enter(session, link->device) == CUDA_SUCCESS)
        driver.cuLinkDestroy(link->state);
    free(link);
}

static void add_option(struct link *link, CUjit_option option, uintptr_t value)
{
    link->options[link->count] = option;
    link->values[link->count] = (void *)value;
    link->count++;
}

static void fill_options(struct link *link, const void *options, uint32_t options_size)
{
    link->count = jit_pairs_read(options, options_size, true, link->options, link->values);
    add_option(link, CU_JIT_INFO_LOG_BUFFER, (uintptr_t)link->info);
    add_option(link, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, LOG_MAX);
    add_option(link, CU_JIT_ERROR_LOG_BUFFER, (uintptr_t)link->error);
    add_option(link, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, LOG_MAX);
    link->wall_time = link->count;
    add_option(link, CU_JIT_WALL_TIME, 0);
}

static CUresult enter_link(struct session *session, const struct wire_cuLinkCreate_v2 *in,
                           struct link *link)
{
    CUresult result = session_enter(session, link->device);

    fill_options(link, in->options, in->options_size);
    if (result == CUDA_SUCCESS)
        result = driver.cuLinkCreate_v2(link->count, link->options, link->values, &link->state);
    return result == CUDA_SUCCESS ? session_put(session, WIRE_LINK, in->link, link) : result;
}

static bool driver_links(void)
{
    return driver.cuLinkCreate_v2 && driver.cuLinkAddData_v2 && driver.cuLinkComplete &&
           driver.cuLinkDestroy;
}

CUresult serve_cuLinkCreate_v2(struct session *session, const struct wire_cuLinkCreate_v2 *in)
{
    const struct device *device = session_find_device(session, "cuLinkCreate", in->device);
    struct link *link;
    CUresult result;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!driver_links())
        return CUDA_ERROR_NOT_SUPPORTED;
    if (session->modules->links >= SESSION_LINKS_MAX) {
        session_log_error(session, "cuLinkCreate: more than %u jobs", SESSION_LINKS_MAX);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    link = calloc(1, sizeof(*link));
    if (!link)
        return CUDA_ERROR_OUT_OF_MEMORY;
    session->modules->links++;
    link->device = device;
    result = enter_link(session, in, link);
    if (result != CUDA_SUCCESS)
        link_destroy(session, link);
    return result;
}

/* The information, then the errors. */
static void tell_results(const struct link *link, float *ret_wall_time, uint32_t *ret_info_size,
                         char *ret_log, uint32_t *ret_size)
{
    size_t info = strnlen(link->info, LOG_MAX), error = strnlen(link->error, LOG_MAX);

    memcpy(ret_wall_time, &link->values[link->wall_time], sizeof(*ret_wall_time));
    memcpy(ret_log, link->info, info);
    memcpy(ret_log + info, link->error, error);
    *ret_info_size = (uint32_t)info;
    *ret_size = (uint32_t)(info + error);
}

/* A copy: the driver must not see bytes that the client changes meanwhile. */
static CUresult take_input(struct session *session, const struct link *link, uint32_t blob,
                           uint64_t size, char **ret_bytes)
{
    _cleanup_fd_ int fd = -1;
    CUresult result = blob_take(session, blob, size, &fd);
    char *bytes;

    if (result != CUDA_SUCCESS)
        return result;
    if (size > BLOB_SIZE_MAX - link->bytes) {
        session_log_error(session, "cuLinkAddData: more than %llu bytes of inputs", BLOB_SIZE_MAX);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    bytes = malloc(size + 1);
    if (!bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (pread_all(fd, bytes, size, 0)) {
        free(bytes);
        return CUDA_ERROR_INVALID_VALUE;
    }
    bytes[size] = '\0';
    *ret_bytes = bytes;
    return CUDA_SUCCESS;
}

CUresult serve_cuLinkAddData_v2(struct session *session, const struct wire_cuLinkAddData_v2 *in,
                                struct link *link, struct wire_cuLinkAddData_v2_reply *ret_out)
{
    _cleanup_free_ char *bytes = NULL;
    CUjit_option options[JIT_PAIRS_MAX];
    void *values[JIT_PAIRS_MAX];
    unsigned count = jit_pairs_read(in->options, in->options_size, true, options, values);
    CUresult result = session_enter(session, link->device);

    if (result == CUDA_SUCCESS)
        result = take_input(session, link, in->blob, in->size, &bytes);
    if (result != CUDA_SUCCESS)
        return result;
    link->bytes += in->size;
    result = driver.cuLinkAddData_v2(link->state, (CUjitInputType)in->type, bytes, in->size,
                                     in->name[0] ? in->name : NULL, count, options, values);
    tell_results(link, &ret_out->wall_time, &ret_out->info_size, ret_out->log, &ret_out->log_size);
    return result;
}

static CUresult send_result(struct session *session, uint64_t handle, const void *cubin,
                            size_t size)
{
    const struct socket_message message = {.kind = SOCKET_LINKED, .value = handle};
    _cleanup_fd_ int fd = -1;

    if (shm_create_read_only("funnel-linked", cubin, size, &fd))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return sock_send(session->socket, &message, sizeof(message), &fd, 1)
               ? CUDA_ERROR_MPS_RPC_FAILURE
               : CUDA_SUCCESS;
}

CUresult serve_cuLinkComplete(struct session *session, const struct wire_cuLinkComplete *in,
                              struct link *link, struct wire_cuLinkComplete_reply *ret_out)
{
    void *cubin = NULL;
    size_t size = 0;
    CUresult result = session_enter(session, link->device);

    if (result == CUDA_SUCCESS)
        result = driver.cuLinkComplete(link->state, &cubin, &size);
    tell_results(link, &ret_out->wall_time, &ret_out->info_size, ret_out->log, &ret_out->log_size);
    if (result == CUDA_SUCCESS)
        result = send_result(session, in->link, cubin, size);
    ret_out->size = size;
    return result;
}

CUresult serve_cuLinkDestroy(struct session *session, const struct wire_cuLinkDestroy *in,
                             struct link *link)
{
    session_remove(session, WIRE_LINK, in->link);
    link_destroy(session, link);
    return CUDA_SUCCESS;
}
