/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the PTX parser, the decoder and the engine: the input is the text behind a head, in memory
 * of exactly its size. A module that loads is made an instance, and its first kernels are run.
 * Their parameters are addresses of a piece of memory, and they run until they end or a moment is
 * over. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"
#include "fuzz.h"

#define LARGEST (1 << 20)

static const char head[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

#define KERNELS 3
#define MEMORY 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool ended;

static void note_end(void *user, CUresult result, const char *message)
{
    pthread_mutex_lock(&lock);
    ended = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

/* One engine for all inputs: its worker keeps memory from launch to launch, as in life. */
static struct sg_engine *engine(void)
{
    static struct sg_engine *only;
    if (!only)
        only = sg_engine_create(
            &(struct sg_engine_config){.sm_count = 2, .host_threads = 1, .timeout_ms = 20});
    return only;
}

static void run(struct sg_instance *instance, const struct sg_kernel_info *info, unsigned kernel,
                struct sg_space *space, uint64_t memory)
{
    uint64_t params[512];
    for (unsigned i = 0; i < 512; i++)
        params[i] = memory + 64 * (i % 8);
    struct sg_launch launch = {
        .instance = instance,
        .kernel = kernel,
        .grid = {2, 1, 1},
        .block = {info->max_threads_per_block < 40 ? info->max_threads_per_block : 40, 1, 1},
        .params = params,
        .params_size = info->params_size,
        .space = space,
        .done = note_end,
    };
    if (info->params_size > sizeof(params) || sg_engine_submit(engine(), &launch) != CUDA_SUCCESS)
        return;
    pthread_mutex_lock(&lock);
    while (!ended)
        pthread_cond_wait(&changed, &lock);
    ended = false;
    pthread_mutex_unlock(&lock);
}

static void run_kernels(struct sg_module *module, struct sg_instance *instance,
                        struct sg_space *space)
{
    void *memory = calloc(1, MEMORY);
    sg_space_add(space, (uintptr_t)memory, MEMORY, SG_READ | SG_WRITE);
    for (unsigned i = 0; i < sg_module_kernel_count(module) && i < KERNELS; i++)
        run(instance, sg_module_kernel(module, i), i, space, (uintptr_t)memory);
    free(memory);
}

static void *bind(struct sg_instance *instance, const struct sg_variable *variable, unsigned index,
                  struct sg_space *space)
{
    void *memory = malloc(variable->size ? variable->size : 1);
    sg_instance_bind(instance, index, (uintptr_t)memory);
    if (variable->size)
        sg_space_add(space, (uintptr_t)memory, variable->size, SG_READ | SG_WRITE);
    return memory;
}

static void instantiate(struct sg_module *module)
{
    unsigned count = sg_module_variable_count(module);
    struct sg_instance *instance = sg_instance_create(module);
    struct sg_space *space = sg_space_create();
    void **memory = calloc(count + 1, sizeof(*memory));
    bool small = true;
    for (unsigned i = 0; i < count; i++)
        small &= sg_module_variable(module, i)->size <= LARGEST;
    for (unsigned i = 0; small && i < count; i++)
        memory[i] = bind(instance, sg_module_variable(module, i), i, space);
    if (small && sg_instance_initialize(instance, NULL, 0) == CUDA_SUCCESS)
        run_kernels(module, instance, space);
    sg_engine_abort(engine(), space, CUDA_ERROR_DEINITIALIZED);
    sg_space_destroy(space);
    for (unsigned i = 0; i < count; i++)
        free(memory[i]);
    free(memory);
    sg_instance_unref(instance);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t left)
{
    char log[256];
    CUresult result;
    char *text = malloc(sizeof(head) - 1 + left);
    memcpy(text, head, sizeof(head) - 1);
    if (left > 0)
        memcpy(text + sizeof(head) - 1, input, left);
    struct sg_module *module =
        sg_module_load(text, sizeof(head) - 1 + left, 90, log, sizeof(log), &result);
    if (module)
        instantiate(module);
    sg_module_unref(module);
    free(text);
    return 0;
}
