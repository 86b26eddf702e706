/* SPDX-License-Identifier: Apache-2.0 */
/* Linking jobs: the driver below the server links, the inputs and the result travel as files. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_context.h"
#include "client_image.h"
#include "client_prototypes.h"
#include "client_socket.h"
#include "fd.h"
#include "jit_options.h"
#include "shm.h"
#include "wire_calls.h"

#define LOG_MAX 8000

struct link {
    uint64_t handle;
    struct jit_options
        options; /* the options of its creation name the program's buffers for outputs */
    void *cubin;
    size_t cubin_size;
};

static struct link *link_lookup(CUlinkState state)
{
    return handles_get(&client->handles, WIRE_LINK, (uint64_t)state);
}

/* The server's log of each step: `log` has the information and then the errors. */
static void write_outputs(const struct link *link, float wall_time, const char *log, uint32_t size,
                          uint32_t info_size)
{
    if (info_size > size)
        info_size = size;
    jit_log_write(&link->options.info, log, info_size);
    jit_log_write(&link->options.error, log + info_size, size - info_size);
    jit_wall_time_write(&link->options, wall_time);
}

static CUresult create_link(struct context *context, struct link *link)
{
    const struct wire_cuLinkCreate_v2 in = {
        .link = link->handle,
        .device = context->device->index,
        .options = link->options.pairs,
        .options_size = link->options.size,
    };

    return wire_cuLinkCreate_v2(&client->channel, &in);
}

CUresult client_cuLinkCreate_v2(unsigned numOptions, CUjit_option *options, void **optionValues,
                                CUlinkState *stateOut)
{
    _cleanup_free_ struct link *link = calloc(1, sizeof(*link));
    struct context *context;
    CUresult result = context_enter(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!link)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = jit_options_read(&link->options, numOptions, options, optionValues);
    if (result != CUDA_SUCCESS)
        return result;
    if (link->options.names_symbols)
        return CUDA_ERROR_NOT_SUPPORTED;
    link->handle = handles_add(&client->handles, WIRE_LINK, link);
    if (!link->handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = create_link(context, link);
    if (result != CUDA_SUCCESS) {
        handles_remove(&client->handles, WIRE_LINK, link->handle);
        return result;
    }
    *stateOut = (CUlinkState)steal_pointer(link)->handle;
    return CUDA_SUCCESS;
}

static CUresult send_input(const struct link *link, struct wire_cuLinkAddData_v2 *in,
                           const void *data)
{
    _cleanup_fd_ int fd = -1;
    char log[LOG_MAX];
    struct wire_cuLinkAddData_v2_reply out = {.log = log, .log_capacity = LOG_MAX};
    CUresult result;

    if (shm_create_read_only("funnel-link", data, in->size, &fd) < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = client_send_descriptor(fd, in->size, &in->blob);
    if (result != CUDA_SUCCESS)
        return result;
    result = wire_cuLinkAddData_v2(&client->channel, in, &out);
    write_outputs(link, out.wall_time, log, out.log_size, out.info_size);
    return result;
}

CUresult client_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                                 const char *name, unsigned numOptions, CUjit_option *options,
                                 void **optionValues)
{
    const struct link *link = link_lookup(state);
    struct jit_options read;
    CUresult result = jit_options_read(&read, numOptions, options, optionValues);

    if (!link)
        return CUDA_ERROR_INVALID_HANDLE;
    if (result != CUDA_SUCCESS || !data || size == 0 || (unsigned)type >= CU_JIT_NUM_INPUT_TYPES)
        return CUDA_ERROR_INVALID_VALUE;
    struct wire_cuLinkAddData_v2 in = {
        .link = link->handle,
        .type = type,
        .size = size,
        .options = read.pairs,
        .options_size = read.size,
        .name = name ? name : "",
    };
    return send_input(link, &in, data);
}

CUresult client_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
                                 unsigned numOptions, CUjit_option *options, void **optionValues)
{
    _cleanup_free_ void *bytes = NULL;
    size_t size;
    CUresult result = image_read_file(path, &bytes, &size);

    return result != CUDA_SUCCESS ? result
                                  : client_cuLinkAddData_v2(state, type, bytes, size, path,
                                                            numOptions, options, optionValues);
}

static void forget_cubin(struct link *link)
{
    if (link->cubin)
        shm_unmap(link->cubin, link->cubin_size);
    link->cubin = NULL;
}

static CUresult map_cubin(struct link *link, int fd, uint64_t size)
{
    forget_cubin(link);
    if (shm_check(fd, size) < 0 || shm_map(fd, size, NULL, SHM_READ_ONLY, &link->cubin) < 0) {
        link->cubin = NULL;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    link->cubin_size = size;
    return CUDA_SUCCESS;
}

static CUresult complete_link(struct link *link)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client->socket_lock);
    _cleanup_fd_ int fd = -1;
    const struct wire_cuLinkComplete in = {.link = link->handle};
    char log[LOG_MAX];
    struct wire_cuLinkComplete_reply out = {.log = log, .log_capacity = LOG_MAX};
    CUresult result = wire_cuLinkComplete(&client->channel, &in, &out);

    write_outputs(link, out.wall_time, log, out.log_size, out.info_size);
    if (result == CUDA_SUCCESS)
        result = client_receive_descriptor(SOCKET_LINKED, link->handle, &fd);
    return result != CUDA_SUCCESS ? result : map_cubin(link, fd, out.size);
}

CUresult client_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
    struct link *link = link_lookup(state);
    CUresult result = link ? complete_link(link) : CUDA_ERROR_INVALID_HANDLE;

    if (result != CUDA_SUCCESS)
        return result;
    *cubinOut = link->cubin;
    if (sizeOut)
        *sizeOut = link->cubin_size;
    return CUDA_SUCCESS;
}

CUresult client_cuLinkDestroy(CUlinkState state)
{
    struct link *link = handles_remove(&client->handles, WIRE_LINK, (uint64_t)state);
    struct wire_cuLinkDestroy in = {.link = (uint64_t)state};
    CUresult result;

    if (!link)
        return CUDA_ERROR_INVALID_HANDLE;
    channel_lock(&client->channel);
    result = wire_cuLinkDestroy(&client->channel, &in);
    channel_unlock(&client->channel);
    forget_cubin(link);
    free(link);
    return result;
}
