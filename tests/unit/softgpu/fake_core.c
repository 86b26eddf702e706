/* SPDX-License-Identifier: Apache-2.0 */
/* exec.h without a processor behind it. */
#include "fake_core.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_prototypes.h"
#include "ranges.h"
#include "texture.h"
#include "unit.h"

#define MOST_GRIDS 64

struct sg_space {
    struct ranges ranges;
};

struct sg_module {
    struct sg_kernel_info kernels[2];
};

struct sg_instance {
    struct sg_module *module;
};

struct sg_engine {
    struct sg_engine_config config;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sg_launch running[MOST_GRIDS];
static unsigned count;
static const void *aborted; /* what sg_engine_abort_launch() was last told */
static struct sg_space *newest_space;

unsigned fake_running(void)
{
    pthread_mutex_lock(&lock);
    unsigned now = count;
    pthread_mutex_unlock(&lock);
    return now;
}

const struct sg_launch *fake_newest(void)
{
    return count ? &running[count - 1] : NULL;
}

void fake_end(CUresult result)
{
    pthread_mutex_lock(&lock);
    struct sg_launch first = running[0];
    memmove(&running[0], &running[1], --count * sizeof(running[0]));
    pthread_mutex_unlock(&lock);
    first.done(first.user, result, result ? "as the test wanted" : "");
}

void sg_engine_abort_launch(struct sg_engine *engine, const void *user)
{
    aborted = user;
}

bool fake_is_aborted(const struct sg_launch *launch)
{
    return launch->user == aborted;
}

struct sg_engine *sg_engine_create(const struct sg_engine_config *config)
{
    struct sg_engine *engine = calloc(1, sizeof(*engine));
    engine->config = *config;
    return engine;
}

CUresult sg_engine_submit(struct sg_engine *engine, const struct sg_launch *launch)
{
    pthread_mutex_lock(&lock);
    running[count++] = *launch;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

unsigned sg_occupancy(const struct sg_engine *engine, const struct sg_kernel_info *kernel,
                      unsigned block_threads, size_t dynamic_shared)
{
    return engine->config.threads_per_sm / block_threads;
}

unsigned sg_cluster_occupancy(const struct sg_engine *engine, const struct sg_kernel_info *kernel,
                              unsigned block_threads, size_t dynamic_shared, unsigned cluster_size)
{
    return sg_occupancy(engine, kernel, block_threads, dynamic_shared) / cluster_size;
}

struct sg_space *sg_space_create(void)
{
    newest_space = calloc(1, sizeof(*newest_space));
    return newest_space;
}

void sg_space_destroy(struct sg_space *space)
{
    ranges_fini(&space->ranges);
    free(space);
}

int sg_space_add(struct sg_space *space, uint64_t base, uint64_t size, unsigned access)
{
    return ranges_add(&space->ranges, base, size, space);
}

void sg_space_set_heap_limit(struct sg_space *space, uint64_t bytes)
{
}

void sg_space_forget_owner(struct sg_space *space, uint64_t owner)
{
}

int sg_space_remove(struct sg_space *space, uint64_t base)
{
    return ranges_remove(&space->ranges, base, NULL);
}

bool fake_space_has(uint64_t address)
{
    return ranges_find(&newest_space->ranges, address);
}

int sg_space_add_texture(struct sg_space *space, const struct sg_texture *texture,
                         uint64_t *ret_number)
{
    return -ENOMEM;
}

int sg_space_remove_texture(struct sg_space *space, uint64_t number)
{
    return -ENOENT;
}

struct sg_module *sg_module_load(const char *ptx, size_t size, int sm_target, char *log,
                                 size_t log_size, CUresult *ret_result)
{
    struct sg_module *module = calloc(1, sizeof(*module));
    if (strcmp(ptx, FAKE_PTX) != 0) {
        free(module);
        strncpy(log, "line 1: not what the test uses", log_size - 1);
        *ret_result = CUDA_ERROR_INVALID_PTX;
        return NULL;
    }
    for (int i = 0; i < 2; i++)
        module->kernels[i] =
            (struct sg_kernel_info){.name = i ? "two" : "one", .max_threads_per_block = 1024};
    return module;
}

void sg_module_unref(struct sg_module *module)
{
    free(module);
}

unsigned sg_module_kernel_count(const struct sg_module *module)
{
    return 2;
}

const struct sg_kernel_info *sg_module_kernel(const struct sg_module *module, unsigned index)
{
    return &module->kernels[index];
}

int sg_module_find_kernel(const struct sg_module *module, const char *name)
{
    for (int i = 0; i < 2; i++) {
        if (strcmp(module->kernels[i].name, name) == 0)
            return i;
    }
    return -ENOENT;
}

unsigned sg_module_variable_count(const struct sg_module *module)
{
    return 0;
}

const struct sg_variable *sg_module_variable(const struct sg_module *module, unsigned index)
{
    return NULL;
}

int sg_module_find_variable(const struct sg_module *module, const char *name)
{
    return -ENOENT;
}

struct sg_instance *sg_instance_create(struct sg_module *module)
{
    struct sg_instance *instance = calloc(1, sizeof(*instance));
    instance->module = module;
    return instance;
}

void sg_instance_unref(struct sg_instance *instance)
{
    free(instance);
}

void sg_instance_bind(struct sg_instance *instance, unsigned index, uint64_t address)
{
}

void sg_instance_share(struct sg_instance *instance, unsigned index, uint64_t address)
{
}

uint64_t sg_instance_address(const struct sg_instance *instance, unsigned index)
{
    return 0;
}

CUresult sg_instance_initialize(struct sg_instance *instance, char *log, size_t log_size)
{
    return CUDA_SUCCESS;
}

CUfunction fake_use(CUcontext *ret_context)
{
    CUfunction one;
    CUmodule module;

    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRetain(ret_context, 0), CUDA_SUCCESS);
    assert_int_equal(cuCtxSetCurrent(*ret_context), CUDA_SUCCESS);
    assert_int_equal(cuModuleLoadData(&module, FAKE_PTX), CUDA_SUCCESS);
    assert_int_equal(cuModuleGetFunction(&one, module, "one"), CUDA_SUCCESS);
    return one;
}
