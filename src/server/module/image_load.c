/* SPDX-License-Identifier: Apache-2.0 */
/* See image_load.h. */
#include "image_load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cached_state.h"
#include "device.h"
#include "image_reader.h"
#include "log.h"
#include "memory.h"

CUresult variables_charge(struct session *session, const struct device *device, uint64_t bytes,
                          uint64_t *ret_charged)
{
    unsigned ordinal = (unsigned)device->ordinal;

    if (bytes == IMAGE_BYTES_UNKNOWN) {
        bytes = session->limits.memory[ordinal];
        if (bytes)
            session_log_error(session, "cuLibraryLoadData: how large the variables are cannot be "
                                       "told from the image, so they count as the whole memory "
                                       "limit");
    }
    if (!bytes)
        return CUDA_SUCCESS;
    if (!memory_charge(session, ordinal, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_charged = bytes;
    return CUDA_SUCCESS;
}

CUresult image_load_charge(const struct image_request *request, uint64_t bytes)
{
    return request->charged
               ? variables_charge(request->session, request->device, bytes, request->charged)
               : CUDA_SUCCESS;
}

/* ---- failures ---- */

static void keep_log(const char *text, size_t most, struct image_log *ret_log)
{
    uint32_t size = (uint32_t)strnlen(text, most);

    ret_log->size = size < ret_log->capacity ? size : ret_log->capacity;
    if (ret_log->size)
        memcpy(ret_log->text, text, ret_log->size);
}

static void report_failure(struct session *session, const char *what)
{
    if (session)
        session_log_error(session, "cuLibraryLoadData: %s", what);
    else
        log_line("Code that was used before is not loaded: %s", what);
}

static void report_compiler(struct session *session, CUresult result)
{
    if (result == CUDA_ERROR_INVALID_IMAGE)
        report_failure(session,
                       "the process that compiled the image crashed, or needed too much time; the "
                       "image is refused");
    if (result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
        report_failure(session, "the process that compiles PTX is gone; a new server has one");
}

/* Logs the first message of the driver's compiler; the client gets all. */
static void report_driver(struct session *session, const char *log)
{
    char line[256];

    snprintf(line, sizeof(line), "%.*s", (int)strcspn(log, "\n"), log);
    if (*line)
        report_failure(session, line);
}

static CUresult load_library(const struct module_cache *cache, struct cached *cached,
                             struct session *session, struct image_log *ret_log)
{
    struct library *library = cached->library;
    CUresult result =
        compiled_image_make(cache->compiler, library, library->image,
                            device_compute_capability(cached->device), &library->code);

    if (result == CUDA_SUCCESS) {
        result = library_load(library);
        keep_log(library->log, LIBRARY_LOG_SIZE, ret_log);
        if (result != CUDA_SUCCESS)
            report_driver(session, library->log);
    } else {
        report_compiler(session, result);
        keep_log(library->code.compiled.log, LIBRARY_LOG_SIZE, ret_log);
    }
    return result;
}

/* ---- loading ---- */

static CUresult looked_into(int error, struct session *session)
{
    if (!error)
        return CUDA_SUCCESS;
    report_failure(session,
                   error == -EBADMSG
                       ? "the process that looked into the image crashed, or needed too much "
                         "time; the image is refused"
                       : "too little memory to look into the image");
    return error == -EBADMSG ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult compile_image(const struct cached *cached, struct session *session,
                              struct image_log *ret_log)
{
    CUresult result = library_compile(cached->library, session, cached->device);

    keep_log(cached->library->log, LIBRARY_LOG_SIZE, ret_log);
    return result;
}

/* Another process reads the image (image_reader.h) while the driver loads it: both expand it, which
 * takes most of the time. The client is charged before the driver allocates device memory. */
CUresult image_load(const struct module_cache *cache, struct cached *cached,
                    const struct image_request *request, struct image_log *ret_log,
                    struct image_facts *ret_facts)
{
    struct session *session = request->session;
    const struct stored_image *image = cached->image;
    const struct image_source source = {image->fd, image->bytes, image->size};
    struct image_question question;

    image_reader_begin(cache->reader, &source, device_compute_capability(cached->device),
                       &question);
    CUresult result = load_library(cache, cached, session, ret_log);
    CUresult looked = looked_into(image_reader_end(cache->reader, &question, ret_facts), session);
    if (looked != CUDA_SUCCESS)
        image_facts_assume(ret_facts);
    if (result == CUDA_SUCCESS)
        result = looked;
    if (result == CUDA_SUCCESS)
        result = image_load_charge(request, ret_facts->variable_bytes);
    return result == CUDA_SUCCESS ? compile_image(cached, session, ret_log) : result;
}
