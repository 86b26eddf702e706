/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads modules, and answers queries about them. The library of a module may be shared: see
 * module_cache.c.
 */
#include "module_state.h"

#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "blob.h"
#include "cleanup.h"
#include "exclusive.h"
#include "function.h"
#include "image_check.h"
#include "memory.h"
#include "server_dispatch.h"
#include "sock.h"
#include "variables.h"

static CUresult receive_image(struct session *session, const struct wire_cuLibraryLoadData *in,
                              struct stored_image **ret_image)
{
    int fd = -1;
    CUresult result = blob_take(session, in->blob, in->image_size, &fd);

    if (result == CUDA_SUCCESS)
        result = image_store_add(&server_module_cache(session->server)->images, fd, in->image_size,
                                 session->identity.uid, ret_image);
    if (result != CUDA_SUCCESS || image_is_sound((*ret_image)->bytes, in->image_size))
        return result;
    session_log_error(session, "cuLibraryLoadData: the image is invalid or truncated");
    stored_image_unref(steal_pointer(*ret_image));
    return CUDA_ERROR_INVALID_IMAGE;
}

static CUresult find_stored_image(struct session *session, const struct wire_cuLibraryLoadData *in,
                                  struct stored_image **ret_image)
{
    *ret_image = image_store_find_number(&server_module_cache(session->server)->images, in->image,
                                         session->identity.uid);
    return *ret_image ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult serve_fnImageFind(struct session *session, const struct wire_fnImageFind *in,
                           struct wire_fnImageFind_reply *ret_out)
{
    struct stored_image *image = image_store_find(&server_module_cache(session->server)->images,
                                                  in->key, in->size, session->identity.uid);
    CUresult result = CUDA_SUCCESS;

    if (!image)
        return CUDA_ERROR_NOT_FOUND;
    const struct socket_message message = {.kind = SOCKET_IMAGE, .value = image->number};
    if (sock_send(session->socket, &message, sizeof(message), &image->fd, 1))
        result = CUDA_ERROR_MPS_RPC_FAILURE;
    ret_out->image = image->number;
    stored_image_unref(image);
    return result;
}

static struct module *module_create(const struct device *device)
{
    struct module *module = calloc(1, sizeof(*module));

    if (!module)
        return NULL;
    module->device = device;
    list_init(&module->functions);
    list_init(&module->bindings);
    return module;
}

static CUresult open_library(struct session *session, const struct wire_cuLibraryLoadData *in,
                             struct module *module, struct stored_image *image,
                             struct wire_cuLibraryLoadData_reply *ret_out)
{
    struct image_request request = {.session = session,
                                    .device = module->device,
                                    .image = image,
                                    .options = in->options,
                                    .options_size = in->options_size,
                                    .charged = &module->charged};
    struct image_log log = {.text = ret_out->error_log, .capacity = ret_out->error_log_capacity};
    CUresult result =
        module_cache_get(server_module_cache(session->server), &request, &module->cached, &log);

    ret_out->error_log_size = log.size;
    if (result != CUDA_SUCCESS)
        return result;
    module->formats = module_library(module)->formats;
    ret_out->state = cached_state(module->cached);
    return CUDA_SUCCESS;
}

static CUresult enter_module(struct session *session, uint64_t handle, struct module *module)
{
    CUresult result = session_put(session, WIRE_MODULE, handle, module);

    if (result != CUDA_SUCCESS)
        return result;
    quota_add(session, QUOTA_MODULES, 1);
    session->modules->counts[module->device->ordinal]++;
    return CUDA_SUCCESS;
}

/* A context without modules counts as new, as after a reset. */
static void leave_module(struct session *session, uint64_t handle, const struct module *module)
{
    session_remove(session, WIRE_MODULE, handle);
    quota_give(session, QUOTA_MODULES, 1);
    if (!--session->modules->counts[module->device->ordinal])
        session->limits_used[module->device->ordinal] = 0;
}

static CUresult check_load(struct session *session, const char *call, uint32_t index,
                           const struct device **ret_device)
{
    const struct device *device = session_find_device(session, call, index);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!quota_allows(session, QUOTA_MODULES, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_device = device;
    return session_enter(session, device);
}

static CUresult load_image(struct session *session, const struct wire_cuLibraryLoadData *in,
                           struct stored_image *image, struct wire_cuLibraryLoadData_reply *ret_out)
{
    const struct device *device = NULL;
    CUresult result = check_load(session, "cuLibraryLoadData", in->device, &device);
    struct module *module = result == CUDA_SUCCESS ? module_create(device) : NULL;

    if (!module)
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
    result = open_library(session, in, module, image, ret_out);
    if (result == CUDA_SUCCESS)
        result = enter_module(session, in->library, module);
    if (result != CUDA_SUCCESS)
        module_destroy(session, module);
    return result;
}

CUresult serve_cuLibraryLoadData(struct session *session, const struct wire_cuLibraryLoadData *in,
                                 struct wire_cuLibraryLoadData_reply *ret_out)
{
    struct stored_image *image = NULL;
    CUresult result =
        in->image ? find_stored_image(session, in, &image) : receive_image(session, in, &image);

    if (result != CUDA_SUCCESS)
        return result;
    result = load_image(session, in, image, ret_out);
    stored_image_unref(image);
    return result;
}

static CUresult join(struct session *session, uint64_t handle, const struct module *twin,
                     const struct device *device)
{
    struct module *module = module_create(device);
    CUresult result;

    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = module_cache_join(twin->cached, device, &module->cached);
    if (result == CUDA_SUCCESS)
        module->formats = module_library(module)->formats;
    if (result == CUDA_SUCCESS)
        result = variables_charge(session, device, cached_variable_bytes(module->cached),
                                  &module->charged);
    if (result == CUDA_SUCCESS)
        result = enter_module(session, handle, module);
    if (result != CUDA_SUCCESS)
        module_destroy(session, module);
    return result;
}

CUresult serve_fnLibraryJoin(struct session *session, const struct wire_fnLibraryJoin *in,
                             struct module *twin)
{
    const struct device *device = NULL;
    CUresult result = check_load(session, "fnLibraryJoin", in->device, &device);

    if (result != CUDA_SUCCESS)
        return result;
    if (cached_is_shared(twin->cached) || device == twin->device) {
        session_log_error(
            session,
            "fnLibraryJoin: the library is not the client's own, or is on the same device");
        return CUDA_ERROR_INVALID_VALUE;
    }
    return join(session, in->library, twin, device);
}

/* The memory part forgets the module first, because observers check addresses of variables against
 * it. */
void module_destroy(struct session *session, struct module *module)
{
    if (!module)
        return;
    memory_forget_module(session, module);
    list_for_each (struct module_observer, observer, &session->server->modules->observers, link)
        observer->forget(session, module);
    list_for_each_safe (struct function, function, &module->functions, link)
        function_end(session, function);
    module_cache_park(server_module_cache(session->server), module->cached,
                      &session->modules->parked[module->device->ordinal]);
    memory_refund(session, (unsigned)module->device->ordinal, module->charged);
    free(module);
}

bool module_has_state(const struct module *module)
{
    return cached_has_state(module->cached);
}

bool module_ends_with_server(const struct module *module)
{
    return cached_state(module->cached) != WIRE_STATE_NONE;
}

static void forget_module(void *context, uint64_t handle, void *object)
{
    struct session *session = context;
    struct module *module = object;

    if (handle_type(handle) != WIRE_MODULE)
        return;
    leave_module(session, handle, module);
    session_enter(session, module->device);
    module_destroy(session, module);
}

void modules_forget_all(struct session *session)
{
    handles_for_each(&session->objects, forget_module, session);
    module_put_parked(session);
}

void module_put_parked(struct session *session)
{
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        if (list_empty(&session->modules->parked[i]))
            continue;
        session_enter(session, session_device(session, i));
        module_cache_put_parked(server_module_cache(session->server), &session->modules->parked[i]);
    }
}

CUresult serve_cuLibraryUnload(struct session *session, const struct wire_cuLibraryUnload *in,
                               struct module *library)
{
    CUresult result = session_enter(session, library->device);

    leave_module(session, in->library, library);
    module_destroy(session, library);
    return result;
}

struct global {
    CUdeviceptr address;
    size_t size;
    bool managed;
};

static CUresult find_managed(const struct module *module, const char *name,
                             struct global *ret_global)
{
    CUlibrary library = module_library(module)->driver;

    if (!driver.cuLibraryGetManaged)
        return CUDA_ERROR_NOT_SUPPORTED;
    ret_global->managed = true;
    return driver.cuLibraryGetManaged(&ret_global->address, &ret_global->size, library, name);
}

/* A library with managed variables is never shared (image_names.h), so variables of a shared
 * library are not queried. */
static bool is_managed(const struct module *module, CUdeviceptr address)
{
    unsigned managed = 0;

    return !cached_is_shared(module->cached) && driver.cuPointerGetAttribute &&
           driver.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) ==
               CUDA_SUCCESS &&
           managed;
}

/* A driver may find managed variables by a separate call only. */
static CUresult find_global(const struct module *module, const char *name,
                            struct global *ret_global)
{
    CUlibrary library = module_library(module)->driver;
    CUresult result =
        driver.cuLibraryGetGlobal(&ret_global->address, &ret_global->size, library, name);

    if (result == CUDA_SUCCESS)
        ret_global->managed = is_managed(module, ret_global->address);
    else if (!cached_is_shared(module->cached) &&
             find_managed(module, name, ret_global) == CUDA_SUCCESS)
        result = CUDA_SUCCESS;
    return result;
}

static CUresult allow_global(struct session *session, struct module *module,
                             const struct global *global)
{
    const struct granule granule = {.kind = GRANULE_GLOBAL,
                                    .part = (unsigned)module->device->ordinal,
                                    .address = global->address,
                                    .size = global->size,
                                    .fd = -1,
                                    .module = module};

    if (!global->size || memory_covers(session, global->address, global->size))
        return CUDA_SUCCESS;
    return memory_allow(session, &granule);
}

static bool has_no_kernels(const struct module *module)
{
    unsigned count;

    return driver.cuLibraryGetKernelCount(&count, module_library(module)->driver) == CUDA_SUCCESS &&
           !count;
}

CUresult serve_cuLibraryGetGlobal(struct session *session, const struct wire_cuLibraryGetGlobal *in,
                                  struct module *library,
                                  struct wire_cuLibraryGetGlobal_reply *ret_out)
{
    struct global global = {0};
    struct exclusive_call call;
    CUresult result = cached_has_variables(library->cached)
                          ? session_enter(session, library->device)
                          : CUDA_ERROR_NOT_FOUND;

    if (result == CUDA_SUCCESS)
        result = cached_query_begin(library->cached, session, "cuLibraryGetGlobal", &call);
    if (result != CUDA_SUCCESS)
        return result;
    result = in->managed ? find_managed(library, in->name, &global)
                         : find_global(library, in->name, &global);
    cached_query_end(library->cached, session, result, &call);
    if (result == CUDA_SUCCESS)
        result = allow_global(session, library, &global);
    if (result != CUDA_SUCCESS)
        return result;
    ret_out->address = global.address;
    ret_out->size = global.size;
    ret_out->managed = global.managed;
    ret_out->carried = !global.managed && cached_carries(library->cached, in->name);
    ret_out->unreached = ret_out->carried && has_no_kernels(library);
    return CUDA_SUCCESS;
}

CUresult serve_fnVariableCopy(struct session *session, const struct wire_fnVariableCopy *in,
                              struct module *library)
{
    const struct variables *variables = cached_variables(library->cached);
    const struct variable *variable = variables && cached_carries(library->cached, in->name)
                                          ? variables_find(variables, in->name)
                                          : NULL;

    if (!variable)
        return CUDA_ERROR_NOT_FOUND;
    if (!memory_covers(session, in->to, variable->size))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = session_enter(session, library->device);
    if (result == CUDA_SUCCESS)
        result = variable_copy_initial(variable, in->to, library->device->gate);
    session_check(session, result);
    return result;
}

static CUresult list_kernels(CUlibrary library, CUkernel **ret_kernels, unsigned *ret_count)
{
    unsigned count = 0;
    CUresult result = driver.cuLibraryGetKernelCount(&count, library);

    if (result != CUDA_SUCCESS)
        return result;
    CUkernel *kernels = calloc(count + 1, sizeof(*kernels));
    if (!kernels)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (count)
        result = driver.cuLibraryEnumerateKernels(kernels, count, library);
    if (result != CUDA_SUCCESS) {
        free(kernels);
        return result;
    }
    *ret_kernels = kernels;
    *ret_count = count;
    return CUDA_SUCCESS;
}

CUresult serve_cuLibraryEnumerateKernels(struct session *session,
                                         const struct wire_cuLibraryEnumerateKernels *in,
                                         struct module *library,
                                         struct wire_cuLibraryEnumerateKernels_reply *ret_out)
{
    _cleanup_free_ CUkernel *kernels = NULL;
    unsigned count = 0;
    CUresult result = session_enter(session, library->device);

    if (result == CUDA_SUCCESS)
        result = list_kernels(module_library(library)->driver, &kernels, &count);
    for (unsigned i = in->first; result == CUDA_SUCCESS && i < count; i++) {
        const char *name = NULL;
        result = driver.cuKernelGetName(&name, kernels[i]);
        size_t size = result == CUDA_SUCCESS ? strlen(name) + 1 : 0;
        if (size > ret_out->names_capacity - ret_out->names_size)
            break;
        memcpy((char *)ret_out->names + ret_out->names_size, name, size);
        ret_out->names_size += (uint32_t)size;
    }
    ret_out->total = count;
    return result;
}
