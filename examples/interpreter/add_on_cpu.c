/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the kernel of kernels/vector_add.ptx with the PTX interpreter alone: no driver, no GPU and
 * no daemon. src/softgpu/interpreter/README.md explains the steps.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"
#include "vector_add.ptx.h"

#define COUNT 10000u
#define BLOCK 256u

struct numbers {
    float a[COUNT], b[COUNT], sum[COUNT];
};

/* The parameters of vector_add, packed as sg_kernel_info says: each lies at its own alignment. */
struct params {
    uint64_t a, b, sum;
    uint32_t count;
};

/* The end of the grid, which a thread of the engine reports. */
struct end {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool reached;
    CUresult result;
};

static void on_done(void *user, CUresult result, const char *message)
{
    struct end *end = user;

    if (*message)
        fprintf(stderr, "%s\n", message);
    pthread_mutex_lock(&end->lock);
    end->result = result;
    end->reached = true;
    pthread_cond_signal(&end->changed);
    pthread_mutex_unlock(&end->lock);
}

static CUresult run(struct sg_engine *engine, struct sg_launch *launch)
{
    struct end end = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

    launch->done = on_done;
    launch->user = &end;
    CUresult result = sg_engine_submit(engine, launch);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&end.lock);
    while (!end.reached)
        pthread_cond_wait(&end.changed, &end.lock);
    pthread_mutex_unlock(&end.lock);
    return end.result;
}

static CUresult add(struct sg_engine *engine, struct sg_instance *instance, unsigned kernel,
                    struct sg_space *space, const struct numbers *numbers)
{
    const struct params params = {.a = (uintptr_t)numbers->a,
                                  .b = (uintptr_t)numbers->b,
                                  .sum = (uintptr_t)numbers->sum,
                                  .count = COUNT};
    struct sg_launch launch = {.instance = instance,
                               .kernel = kernel,
                               .grid = {(COUNT + BLOCK - 1) / BLOCK, 1, 1},
                               .block = {BLOCK, 1, 1},
                               .params = &params,
                               .params_size = offsetof(struct params, count) + sizeof(uint32_t),
                               .space = space};

    return run(engine, &launch);
}

static unsigned count_wrong(const struct numbers *numbers)
{
    unsigned wrong = 0;

    for (unsigned i = 0; i < COUNT; i++)
        wrong += numbers->sum[i] != numbers->a[i] + numbers->b[i];
    return wrong;
}

/* A module without variables needs no memory of its own. */
static struct sg_instance *load(int *ret_kernel)
{
    char log[1024] = "";
    CUresult result;
    struct sg_module *module =
        sg_module_load(vector_add_ptx, strlen(vector_add_ptx), 90, log, sizeof(log), &result);
    struct sg_instance *instance = NULL;

    if (module) {
        *ret_kernel = sg_module_find_kernel(module, "vector_add");
        instance = sg_instance_create(module);
        sg_module_unref(module);
    }
    if (instance && sg_instance_initialize(instance, log, sizeof(log)) == CUDA_SUCCESS)
        return instance;
    fprintf(stderr, "The PTX cannot be loaded: %s\n", log);
    sg_instance_unref(instance);
    return NULL;
}

int main(void)
{
    int kernel = -1;
    struct numbers *numbers = calloc(1, sizeof(*numbers));
    struct sg_engine *engine = sg_engine_create(&(struct sg_engine_config){.sm_count = 4});
    struct sg_space *space = sg_space_create();
    struct sg_instance *instance = load(&kernel);

    if (!numbers || !engine || !space || !instance || kernel < 0)
        return EXIT_FAILURE;
    for (unsigned i = 0; i < COUNT; i++) {
        numbers->a[i] = (float)i;
        numbers->b[i] = 0.5f * (float)i;
    }
    /* Kernels reach only memory that the space lists. */
    sg_space_add(space, (uintptr_t)numbers, sizeof(*numbers), SG_READ | SG_WRITE);
    CUresult result = add(engine, instance, (unsigned)kernel, space, numbers);
    unsigned wrong = result == CUDA_SUCCESS ? count_wrong(numbers) : COUNT;
    printf("vector_add: %u sums, %u wrong\n", COUNT, wrong);
    sg_engine_destroy(engine);
    sg_instance_unref(instance);
    sg_space_destroy(space);
    free(numbers);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
