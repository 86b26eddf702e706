/* SPDX-License-Identifier: Apache-2.0 */
/* Images and the JIT options that come with them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client_module.h"
#include "fd.h"
#include "image_size.h"
#include "shm.h"

static void add_pair(struct jit_options *options, uint64_t name, uint64_t value)
{
    uint64_t pair[2] = {name, value};

    if (options->size + sizeof(pair) > sizeof(options->pairs))
        return;
    memcpy(options->pairs + options->size, pair, sizeof(pair));
    options->size += sizeof(pair);
}

/* Options whose value is an address make no sense elsewhere; those about buffers are served here,
 * and what is left are hints that change no result. */
static void read_option(struct jit_options *options, CUjit_option name, void **value)
{
    switch (name) {
    case CU_JIT_INFO_LOG_BUFFER:
        options->info.text = *value;
        break;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        options->info.capacity = (unsigned)(uintptr_t)*value;
        options->info.ret_size = (unsigned *)value;
        break;
    case CU_JIT_ERROR_LOG_BUFFER:
        options->error.text = *value;
        break;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        options->error.capacity = (unsigned)(uintptr_t)*value;
        options->error.ret_size = (unsigned *)value;
        break;
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_THREADS_PER_BLOCK:
    case CU_JIT_OPTIMIZATION_LEVEL:
    case CU_JIT_TARGET:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
        add_pair(options, name, (uint32_t)(uintptr_t)*value);
        break;
    default:
        break;
    }
}

CUresult jit_options_read(struct jit_options *options, unsigned count, CUjit_option *names,
                          void **values)
{
    memset(options, 0, sizeof(*options));
    if (count > 0 && (!names || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        read_option(options, names[i], &values[i]);
    return CUDA_SUCCESS;
}

CUresult image_init(struct image *image, const void *code, const struct jit_options *options)
{
    const void *bytes;
    size_t size;

    if (!code)
        return CUDA_ERROR_INVALID_VALUE;
    if (!image_find(code, &bytes, &size))
        return CUDA_ERROR_INVALID_IMAGE;
    if (shm_create_read_only("funnel-image", bytes, size, &image->fd) < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    image->size = size;
    image->options_size = options ? options->size : 0;
    if (options)
        memcpy(image->options, options->pairs, options->size);
    return CUDA_SUCCESS;
}

void image_fini(struct image *image)
{
    fd_close(&image->fd);
}

CUresult image_read_file(const char *path, void **ret_bytes)
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
    return CUDA_SUCCESS;
}
