/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping images, and sharing them with the server; see client_image.h. */
#include "client_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach.h"
#include "cleanup.h"
#include "client.h"
#include "client_call.h"
#include "client_socket.h"
#include "fd.h"
#include "feature.h"
#include "image_inputs.h"
#include "image_key.h"
#include "image_size.h"
#include "image_suits.h"
#include "image_trim.h"
#include "same_bytes.h"
#include "shm.h"
#include "wire_calls.h"

/* ---- images that the server has cached ---- */

static bool is_same(int fd, const void *bytes, size_t size)
{
    void *other;

    if (shm_check(fd, size) < 0 || shm_map(fd, size, NULL, SHM_READ_ONLY, &other) < 0)
        return false;
    bool same = same_bytes(other, bytes, size);
    shm_unmap(other, size);
    return same;
}

static CUresult ask_for_image(const struct wire_fnImageFind *in, uint64_t *ret_number, int *ret_fd)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client->socket_lock);
    struct wire_fnImageFind_reply out;
    CUresult result = wire_fnImageFind(&client->channel, in, &out);

    if (result != CUDA_SUCCESS)
        return result;
    *ret_number = out.image;
    return client_receive_descriptor(SOCKET_IMAGE, out.image, ret_fd);
}

static bool may_share_image(size_t size)
{
    return size >= IMAGE_KEY_MIN && !feature_is_off_once(FEATURE_IMAGE_SHARING);
}

/* Shares the server's file when the file has the same bytes. Comparing is cheaper than copying, and
 * the client must verify the code that it is about to run. */
static bool share_image(struct image *image, const void *bytes, size_t size)
{
    _cleanup_fd_ int fd = -1;

    if (!may_share_image(size))
        return false;
    const struct wire_fnImageFind in = {.key = image_key(bytes, size), .size = size};
    if (ask_for_image(&in, &image->number, &fd) != CUDA_SUCCESS || !is_same(fd, bytes, size)) {
        image->number = 0;
        return false;
    }
    image->fd = fd_steal(&fd);
    return true;
}

static CUresult fill_image(struct image *image, const void *bytes, size_t size)
{
    if (!share_image(image, bytes, size) &&
        shm_create_read_only("funnel-image", bytes, size, &image->fd) < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    image->size = size;
    return CUDA_SUCCESS;
}

static CUresult fill_with_inputs(struct image *image, const void *code)
{
    _cleanup_free_ void *bytes = NULL;
    size_t size;
    int error = image_gather_inputs(code, &bytes, &size);

    if (error)
        return error == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
    return fill_image(image, bytes, size);
}

/* Without the code that no device runs, if the container allows leaving it out. */
static CUresult fill_trimmed(struct image *image, const void *bytes, size_t size)
{
    _cleanup_free_ void *trimmed = NULL;
    unsigned sms[ATTACH_DEVICES_MAX];

    for (int i = 0; i < client->device_count; i++)
        sms[i] = device_compute_capability(&client->devices[i]);
    if (image_trim(bytes, size, sms, (unsigned)client->device_count, &trimmed, &size))
        bytes = trimmed;
    return fill_image(image, bytes, size);
}

static CUresult fill_with_code(struct image *image, const void *code)
{
    const void *bytes;
    size_t size;

    if (image_has_only_inputs(code))
        return fill_with_inputs(image, code);
    if (!image_find(code, &bytes, &size))
        return CUDA_ERROR_INVALID_IMAGE;
    if (image_has_inputs(code))
        image->wrapper = code;
    return fill_trimmed(image, bytes, size);
}

CUresult image_init(struct image *image, const void *code, const struct jit_options *options)
{
    if (!code)
        return CUDA_ERROR_INVALID_VALUE;
    *image = (struct image){.fd = -1, .options_size = options ? options->size : 0};
    if (options)
        memcpy(image->options, options->pairs, options->size);
    return fill_with_code(image, code);
}

static struct image *inputs_create(const struct image *image)
{
    struct image *inputs = malloc(sizeof(*inputs));

    if (!inputs)
        return NULL;
    *inputs = *image;
    inputs->fd = -1;
    inputs->number = 0;
    inputs->wrapper = NULL;
    if (fill_with_inputs(inputs, image->wrapper) == CUDA_SUCCESS)
        return inputs;
    free(inputs);
    return NULL;
}

struct image *image_inputs(struct image *image)
{
    if (!image->inputs && image->wrapper)
        image->inputs = inputs_create(image);
    return image->inputs;
}

bool image_may_run(const struct image *image, unsigned sm)
{
    void *bytes;

    if (shm_map(image->fd, image->size, NULL, SHM_READ_ONLY, &bytes) < 0)
        return true;
    bool suits = image_suits(bytes, image->size, sm);
    shm_unmap(bytes, image->size);
    return suits;
}

void image_keep_inputs(struct image *image)
{
    image_inputs(image);
    image->wrapper = NULL;
}

void image_forget_server(struct image *image)
{
    image->number = 0;
    if (image->inputs)
        image->inputs->number = 0;
}

CUresult image_copy(const struct image *image, struct image *ret_image)
{
    int fd = fcntl(image->fd, F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_image = *image;
    ret_image->fd = fd;
    ret_image->inputs = NULL;
    return CUDA_SUCCESS;
}

void image_fini(struct image *image)
{
    if (image->inputs)
        fd_close(&image->inputs->fd);
    free(image->inputs);
    fd_close(&image->fd);
}

CUresult image_read_file(const char *path, void **ret_bytes, size_t *ret_size)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    char *bytes;

    if (fd < 0)
        return errno == ENOENT ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_OPERATING_SYSTEM;
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return CUDA_ERROR_OPERATING_SYSTEM;
    bytes = malloc((size_t)status.st_size + 16);
    if (!bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(bytes + status.st_size, 0, 16);
    if (read_all(fd, bytes, (size_t)status.st_size) < 0) {
        free(bytes);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *ret_bytes = bytes;
    if (ret_size)
        *ret_size = (size_t)status.st_size;
    return CUDA_SUCCESS;
}
