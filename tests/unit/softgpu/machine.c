/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine of the tests: device memory comes from the C library, each allocation is a range of
 * the space.
 */
#include "machine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct end {
    struct machine *machine;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool reached;
    CUresult result;
};

struct allocation {
    struct allocation *next;
    char bytes[] __attribute__((aligned(256)));
};

static struct allocation *allocations;

char *machine_text(const char *name, size_t *ret_size)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", PTX_DATA, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = malloc(1 << 24);
    *ret_size = fread(text, 1, 1 << 24, file);
    fclose(file);
    return text;
}

void *machine_memory(struct machine *machine, size_t size)
{
    struct allocation *allocation =
        aligned_alloc(256, (sizeof(*allocation) + size + 511) / 256 * 256);
    assert_non_null(allocation);
    memset(allocation->bytes, 0, size);
    allocation->next = allocations;
    allocations = allocation;
    assert_int_equal(
        sg_space_add(machine->space, (uintptr_t)allocation->bytes, size, SG_READ | SG_WRITE), 0);
    return allocation->bytes;
}

static void bind_variables(struct machine *machine)
{
    machine->instance = sg_instance_create(machine->module);
    assert_non_null(machine->instance);
    for (unsigned i = 0; i < sg_module_variable_count(machine->module); i++) {
        const struct sg_variable *variable = sg_module_variable(machine->module, i);
        void *memory = machine_memory(machine, variable->size ? variable->size : 1);
        sg_instance_bind(machine->instance, i, (uintptr_t)memory);
    }
    assert_int_equal(sg_instance_initialize(machine->instance, machine->log, sizeof(machine->log)),
                     CUDA_SUCCESS);
}

static struct machine *create(const char *text, size_t size)
{
    CUresult result = CUDA_SUCCESS;
    struct machine *machine = calloc(1, sizeof(*machine));
    machine->space = sg_space_create();
    machine->engine = sg_engine_create(&(struct sg_engine_config){.sm_count = 4});
    machine->module = sg_module_load(text, size, 90, machine->log, sizeof(machine->log), &result);
    if (!machine->module)
        fail_msg("%d: %s", result, machine->log);
    bind_variables(machine);
    return machine;
}

struct machine *machine_create(const char *file)
{
    size_t size;
    char *text = machine_text(file, &size);
    struct machine *machine = create(text, size);
    free(text);
    return machine;
}

struct machine *machine_create_from(const char *ptx)
{
    return create(ptx, strlen(ptx));
}

void machine_destroy(struct machine *machine)
{
    sg_engine_destroy(machine->engine);
    sg_instance_unref(machine->instance);
    sg_module_unref(machine->module);
    sg_space_destroy(machine->space);
    while (allocations) {
        struct allocation *allocation = allocations;
        allocations = allocation->next;
        free(allocation);
    }
    free(machine);
}

static void on_done(void *user, CUresult result, const char *message)
{
    struct end *end = user;
    pthread_mutex_lock(&end->lock);
    snprintf(end->machine->message, sizeof(end->machine->message), "%s", message);
    end->result = result;
    end->reached = true;
    pthread_cond_signal(&end->changed);
    pthread_mutex_unlock(&end->lock);
}

static void on_print(void *user, enum sg_print_kind kind, const struct sg_text *text)
{
    struct end *end = user;
    struct machine *machine = end->machine;
    size_t size = 0;
    for (unsigned i = 0; i < text->part_count; i++)
        size += text->part_sizes[i];
    pthread_mutex_lock(&end->lock);
    if (machine->printed_size + size < sizeof(machine->printed)) {
        memcpy(machine->printed + machine->printed_size, text->bytes, size);
        machine->printed_size += size;
    }
    pthread_mutex_unlock(&end->lock);
}

static void pack_params(const struct sg_kernel_info *info, void **params, unsigned char *packed)
{
    for (uint32_t i = 0; i < info->param_count; i++)
        memcpy(packed + info->params[i].offset, params[i], info->params[i].size);
}

CUresult machine_launch_3d(struct machine *machine, const char *kernel, const uint32_t grid[3],
                           const uint32_t block[3], uint32_t dynamic_shared, void **params)
{
    unsigned char packed[4096] = {0};
    struct end end = {.machine = machine};
    int index = sg_module_find_kernel(machine->module, kernel);
    assert_true(index >= 0);
    const struct sg_kernel_info *info = sg_module_kernel(machine->module, (unsigned)index);
    pack_params(info, params, packed);
    pthread_mutex_init(&end.lock, NULL);
    pthread_cond_init(&end.changed, NULL);
    struct sg_launch launch = {
        .instance = machine->instance,
        .kernel = (unsigned)index,
        .grid = {grid[0], grid[1], grid[2]},
        .block = {block[0], block[1], block[2]},
        .dynamic_shared = dynamic_shared,
        .params = packed,
        .params_size = info->params_size,
        .space = machine->space,
        .print = on_print,
        .done = on_done,
        .user = &end,
    };
    CUresult result = sg_engine_submit(machine->engine, &launch);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&end.lock);
    while (!end.reached)
        pthread_cond_wait(&end.changed, &end.lock);
    pthread_mutex_unlock(&end.lock);
    pthread_mutex_destroy(&end.lock);
    pthread_cond_destroy(&end.changed);
    return end.result;
}

CUresult machine_launch(struct machine *machine, const char *kernel, uint32_t blocks,
                        uint32_t threads, uint32_t dynamic_shared, void **params)
{
    return machine_launch_3d(machine, kernel, (uint32_t[]){blocks, 1, 1},
                             (uint32_t[]){threads, 1, 1}, dynamic_shared, params);
}
