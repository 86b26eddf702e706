/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: images loaded on one device. */
#include "client_module.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "client_library.h"
#include "client_log.h"
#include "client_managed.h"
#include "client_profile.h"
#include "client_socket.h"
#include "image_suits.h"
#include "managed_variable.h"
#include "module_function.h"
#include "module_variable.h"
#include "recovery_hook.h"
#include "reference.h"
#include "shm.h"
#include "wire_calls.h"

#define LOG_MAX 4096
#define NAMES_MAX 8000

/* To so many servers one after another an image is sent, as each of them ends. */
#define SERVERS_TRIED 3

struct module *module_lookup(CUmodule handle)
{
    return handles_get(&client->handles, WIRE_MODULE, (uint64_t)handle);
}

static struct image *image_of(struct module *module)
{
    return module->library ? &module->library->image : &module->image;
}

/* ---- a profiler ---- */

static void tell_with_code(struct module *module, struct profiler_resource *resource)
{
    const struct image *image = image_of(module);
    void *bytes;

    if (shm_map(image->fd, image->size, NULL, SHM_READ_ONLY, &bytes) < 0) {
        client_profile_resource(resource);
        return;
    }
    if (!image_find_machine_code(bytes, image->size,
                                 device_compute_capability(module->context->device),
                                 &resource->code, &resource->code_size)) {
        resource->code = NULL;
        resource->code_size = 0;
    }
    client_profile_resource(resource);
    shm_unmap(bytes, image->size);
}

static void tell_profiler(struct module *module, enum profiler_resource_kind kind)
{
    struct profiler_resource resource = {
        .kind = kind,
        .context = module->context->handle,
        .module = (CUmodule)module->handle,
    };

    if (client_profile_is_on())
        tell_with_code(module, &resource);
}

/* ---- loading ---- */

/* CUDA_ERROR_NOT_FOUND when the server has gone meanwhile, and another has taken its place. */
static CUresult send_image(const struct image *image, struct wire_cuLibraryLoadData *in,
                           struct wire_cuLibraryLoadData_reply *ret_out)
{
    uint64_t connection = client->socket_inode;
    CUresult result = client_send_descriptor(image->fd, image->size, &in->blob);

    in->image = 0;
    if (result == CUDA_SUCCESS)
        return client_descriptor_result(connection,
                                        wire_cuLibraryLoadData(&client->channel, in, ret_out));
    if (!channel_alive(&client->channel))
        result = recovery_error_slowly();
    return result == CUDA_SUCCESS ? CUDA_ERROR_NOT_FOUND : result;
}

/* Names the image by the server's number for it, or else sends it. */
static CUresult ask_for(const struct image *image, struct wire_cuLibraryLoadData *in,
                        struct wire_cuLibraryLoadData_reply *ret_out)
{
    CUresult result = CUDA_ERROR_NOT_FOUND;

    in->image = image->number;
    if (in->image)
        result = wire_cuLibraryLoadData(&client->channel, in, ret_out);
    for (int i = 0; i < SERVERS_TRIED && result == CUDA_ERROR_NOT_FOUND; i++)
        result = send_image(image, in, ret_out);
    return result;
}

static CUresult send_image_load(const struct module *module, const struct image *image,
                                struct wire_cuLibraryLoadData_reply *ret_out)
{
    struct wire_cuLibraryLoadData in = {
        .library = module->handle,
        .device = module->context->device->index,
        .image_size = image->size,
        .options = image->options,
        .options_size = image->options_size,
    };

    return ask_for(image, &in, ret_out);
}

/* Code that was linked for other devices only may still be linked for this one. A driver that loads
 * libraries for all devices at once may find out late that it has no kernel for this device. That
 * is at the request for the kernel. So the client asks here. */
static CUresult send_load(struct module *module, const struct jit_options *options)
{
    char text[LOG_MAX];
    struct wire_cuLibraryLoadData_reply out = {.error_log = text, .error_log_capacity = LOG_MAX};
    struct image *image = image_of(module), *inputs;
    CUresult result = CUDA_ERROR_NO_BINARY_FOR_GPU;

    if (image_may_run(image, device_compute_capability(module->context->device)))
        result = send_image_load(module, image, &out);
    inputs = result == CUDA_ERROR_NO_BINARY_FOR_GPU ? image_inputs(image) : NULL;
    if (inputs)
        result = send_image_load(module, inputs, &out);
    module->state = result == CUDA_SUCCESS ? out.state : WIRE_STATE_LOST;
    if (options) {
        jit_log_write(&options->info, text, result == CUDA_SUCCESS ? out.error_log_size : 0);
        jit_log_write(&options->error, text, result == CUDA_SUCCESS ? 0 : out.error_log_size);
    }
    return result;
}

static struct module *module_create(struct context *context, struct library *library)
{
    struct module *module = calloc(1, sizeof(*module));

    if (!module)
        return NULL;
    module->context = context;
    module->library = library;
    list_init(&module->functions);
    list_init(&module->prefetched);
    list_init(&module->symbols);
    list_init(&module->references);
    list_init(&module->managed);
    list_init(&module->link);
    module->image.fd = -1;
    module->handle = handles_add(&client->handles, WIRE_MODULE, module);
    if (module->handle)
        return module;
    free(module);
    return NULL;
}

/* Enters the module when the server has loaded it, and frees it otherwise. */
static CUresult settle_module(struct module *module, CUresult result, struct module **ret_module)
{
    if (result != CUDA_SUCCESS) {
        handles_remove(&client->handles, WIRE_MODULE, module->handle);
        image_fini(&module->image);
        free(module);
        return result;
    }
    pthread_mutex_lock(&client->lock);
    list_append(&module->context->modules, &module->link);
    pthread_mutex_unlock(&client->lock);
    tell_profiler(module, PROFILER_MODULE_LOADED);
    *ret_module = module;
    return CUDA_SUCCESS;
}

CUresult module_load(struct context *context, const struct image *image,
                     const struct jit_options *options, struct library *library,
                     struct module **ret_module)
{
    struct module *module = module_create(context, library);
    CUresult result;

    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = library ? CUDA_SUCCESS : image_copy(image, &module->image);
    if (result == CUDA_SUCCESS)
        result = send_load(module, options);
    module->image.wrapper = NULL; /* the program may free it now */
    return settle_module(module, result, ret_module);
}

CUresult module_join(struct context *context, const struct module *twin, struct module **ret_module)
{
    struct wire_fnLibraryJoin in = {.twin = twin->handle, .device = context->device->index};
    struct module *module;

    if (twin->context->device == context->device) {
        client_log(
            "a library with __managed__ variables cannot be loaded in two contexts of one device");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    module = module_create(context, twin->library);
    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    module->state = WIRE_STATE_LOST;
    in.library = module->handle;
    return settle_module(module, wire_fnLibraryJoin(&client->channel, &in), ret_module);
}

/* A module that is not in a list yet is being loaded by a thread that will ask again. */
CUresult module_replay(struct module *module)
{
    CUresult result;

    if (list_empty(&module->link))
        return CUDA_SUCCESS;
    module_forget_prefetched(module);
    image_forget_server(&module->image);
    result = send_load(module, NULL);
    return result == CUDA_SUCCESS ? module_variables_replay(module) : result;
}

static void forget_functions(struct module *module)
{
    list_for_each_safe (struct function, function, &module->functions, link) {
        list_remove(&function->link);
        function_destroy(function);
    }
    module_forget_prefetched(module);
}

static void forget_contents(struct module *module)
{
    module_variables_end_owned(module);
    forget_functions(module);
    references_free(&module->references);
    module_variables_forget(module);
}

/* The server waits for work of the module that still runs. Nothing is sent to variables that are
 * gone. */
void module_unload(struct module *module)
{
    struct wire_cuLibraryUnload in = {.library = module->handle};

    if (!handles_remove(&client->handles, WIRE_MODULE, module->handle))
        return;
    tell_profiler(module, PROFILER_MODULE_ENDS);
    pthread_mutex_lock(&client->lock);
    list_remove(&module->link);
    pthread_mutex_unlock(&client->lock);
    managed_leave(&module->managed);
    channel_lock(&client->channel);
    wire_cuLibraryUnload(&client->channel, &in);
    channel_unlock(&client->channel);
    forget_contents(module);
    image_fini(&module->image);
    free(module);
}

static struct module *any_module(struct context *context)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    return list_first(&context->modules, struct module, link);
}

/* On another device the program may be using the managed ones. Memory of the context ends with it.
 */
void module_rest(struct module *module)
{
    struct module *other;

    tell_profiler(module, PROFILER_MODULE_ENDS);
    forget_functions(module);
    module_variables_end_owned(module);
    module_variables_hide(module);
    managed_rest(&module->managed);
    module->context = module->context->device->primary;
    pthread_mutex_lock(&client->lock);
    list_remove(&module->link);
    list_append(&module->library->resting, &module->link);
    pthread_mutex_unlock(&client->lock);
    other = library_active_module(module->library);
    if (other)
        managed_move(&module->managed, &other->managed, other->context);
}

void module_unload_all(struct context *context)
{
    struct module *module;

    while ((module = any_module(context)) != NULL) {
        if (module->library && !list_empty(&module->managed))
            module_rest(module);
        else
            module_unload(module);
    }
}

CUresult module_wake(struct module *module, struct context *context)
{
    pthread_mutex_lock(&client->lock);
    list_remove(&module->link);
    list_append(&context->modules, &module->link);
    pthread_mutex_unlock(&client->lock);
    module->context = context;
    tell_profiler(module, PROFILER_MODULE_LOADED);
    module_variables_show(module);
    return managed_wake(&module->managed, context);
}

/* ---- contents of a module ---- */

static unsigned take_names(const char *at, uint32_t size, char **names, unsigned count)
{
    const char *end = at + size;
    unsigned taken = 0;

    while (taken < count && at < end && memchr(at, 0, (size_t)(end - at))) {
        names[taken] = strdup(at);
        if (!names[taken])
            break;
        at += strlen(at) + 1;
        taken++;
    }
    return taken;
}

CUresult module_kernel_names(struct module *module, char **names, unsigned count,
                             unsigned *ret_total)
{
    char text[NAMES_MAX];
    unsigned have = 0;

    do {
        struct wire_cuLibraryEnumerateKernels in = {.library = module->handle, .first = have};
        struct wire_cuLibraryEnumerateKernels_reply out = {.names = text,
                                                           .names_capacity = NAMES_MAX};
        CUresult result = wire_cuLibraryEnumerateKernels(&client->channel, &in, &out);
        unsigned got;

        if (result != CUDA_SUCCESS)
            return result;
        *ret_total = out.total;
        if (count > out.total)
            count = out.total;
        got = take_names(text, out.names_size, names + have, count - have);
        if (got == 0)
            break;
        have += got;
    } while (have < count);
    return have < count ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
