/* SPDX-License-Identifier: Apache-2.0 */
/* Sets variables of a client that has come from another server: saved_variables.h. */
#include <stdlib.h>
#include <string.h>

#include "blob.h"
#include "cleanup.h"
#include "fd.h"
#include "module_cache.h"
#include "saved_variables.h"
#include "server_dispatch.h"
#include "server_module.h"
#include "variables.h"

/* A record, whose parts lie within the file. */
struct found_record {
    struct saved_record head;
    const char *name;
    char *contents;
};

/* False at the end, or when the rest is no record. */
static bool next_record(char *bytes, size_t size, size_t *at, struct found_record *ret_record)
{
    size_t left = size - *at;
    struct saved_record *head = &ret_record->head;

    if (left < sizeof(*head))
        return false;
    memcpy(head, bytes + *at, sizeof(*head));
    left -= sizeof(*head);
    if (head->name_size > left || head->size > left - head->name_size ||
        saved_round_up(head->size) > left - head->name_size)
        return false;
    ret_record->name = bytes + *at + sizeof(*head);
    ret_record->contents = bytes + *at + sizeof(*head) + head->name_size;
    *at += sizeof(*head) + head->name_size + saved_round_up(head->size);
    return memchr(ret_record->name, '\0', head->name_size) != NULL;
}

/* The driver loads the library, if it has not yet, and its variables are recorded. */
static CUresult load_variables(struct session *session, const struct module *module)
{
    struct exclusive_call call;
    CUresult result = session_enter(session, module->device);

    if (result == CUDA_SUCCESS)
        result = cached_query_begin(module->cached, session, "cuLibraryGetGlobal", &call);
    if (result == CUDA_SUCCESS)
        cached_query_end(module->cached, session, CUDA_SUCCESS, &call);
    return result;
}

/* Copies to variables of one module, which are made together. */
#define BATCH_MAX 256u
struct batch {
    struct session *session;
    uint64_t handle;
    const struct module *module;
    struct variable_copy copies[BATCH_MAX];
    uint32_t count;
};

static CUresult end_batch(struct batch *batch)
{
    uint32_t count = batch->count;

    batch->count = 0;
    return count ? variables_write(batch->copies, count, batch->module->device->gate)
                 : CUDA_SUCCESS;
}

static CUresult begin_batch(struct batch *batch, uint64_t handle)
{
    CUresult result = end_batch(batch);

    if (result != CUDA_SUCCESS)
        return result;
    batch->handle = handle;
    batch->module = session_lookup(batch->session, WIRE_MODULE, handle);
    return batch->module && cached_has_variables(batch->module->cached)
               ? load_variables(batch->session, batch->module)
               : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_copy(struct batch *batch, const struct found_record *record)
{
    const struct variables *variables = cached_variables(batch->module->cached);
    const struct variable *variable = variables ? variables_find(variables, record->name) : NULL;

    if (!variable || variable->size != record->head.size)
        return CUDA_ERROR_NOT_FOUND;
    batch->copies[batch->count++] = (struct variable_copy){variable, record->contents};
    return batch->count == BATCH_MAX ? end_batch(batch) : CUDA_SUCCESS;
}

static CUresult set_variable(struct batch *batch, const struct found_record *record)
{
    CUresult result = CUDA_SUCCESS;

    if (!batch->module || batch->handle != record->head.module)
        result = begin_batch(batch, record->head.module);
    if (result == CUDA_SUCCESS)
        result = add_copy(batch, record);
    if (result != CUDA_SUCCESS)
        session_log_error(batch->session, "fnVariablesSet: variable %s cannot be set: %s",
                          record->name, driver_error_name(result));
    return result;
}

static CUresult set_all(struct session *session, char *bytes, size_t size)
{
    struct batch batch = {.session = session};
    CUresult result = CUDA_SUCCESS;
    struct found_record record;
    size_t at = 0;

    while (result == CUDA_SUCCESS && at < size && !session->stop)
        result = next_record(bytes, size, &at, &record) ? set_variable(&batch, &record)
                                                        : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? end_batch(&batch) : result;
}

/* The client may write to the file, so its bytes are copied before they are looked at. */
CUresult serve_fnVariablesSet(struct session *session, const struct wire_fnVariablesSet *in)
{
    _cleanup_fd_ int fd = -1;
    CUresult result = in->size <= SAVED_VARIABLES_MAX ? blob_take(session, in->blob, in->size, &fd)
                                                      : CUDA_ERROR_INVALID_VALUE;

    if (result != CUDA_SUCCESS)
        return result;
    _cleanup_free_ char *bytes = malloc(in->size);
    if (!bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (pread_all(fd, bytes, in->size, 0))
        return CUDA_ERROR_INVALID_VALUE;
    return set_all(session, bytes, in->size);
}
