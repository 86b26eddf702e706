/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the PTX parser and decoder: the input is the text behind a head, in memory of exactly its
 * size. A module that loads is made an instance, so that initial values are written too. */
#include <stdlib.h>
#include <string.h>

#include "exec.h"
#include "fuzz.h"

#define LARGEST (1 << 20)

static const char head[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

static void *bind(struct sg_instance *instance, const struct sg_variable *variable, unsigned index)
{
    void *memory = malloc(variable->size ? variable->size : 1);
    sg_instance_bind(instance, index, (uintptr_t)memory);
    return memory;
}

static void instantiate(struct sg_module *module)
{
    unsigned count = sg_module_variable_count(module);
    struct sg_instance *instance = sg_instance_create(module);
    void **memory = calloc(count + 1, sizeof(*memory));
    bool small = true;
    for (unsigned i = 0; i < count; i++)
        small &= sg_module_variable(module, i)->size <= LARGEST;
    for (unsigned i = 0; small && i < count; i++)
        memory[i] = bind(instance, sg_module_variable(module, i), i);
    if (small)
        sg_instance_initialise(instance, NULL, 0);
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
