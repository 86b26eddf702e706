/* SPDX-License-Identifier: Apache-2.0 */
/* See saved_variables.h. */
#include "saved_variables.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "log.h"
#include "memory.h"
#include "module_cache.h"
#include "server_module.h"
#include "variables.h"

/* While the modules of a client are visited. */
struct reading {
    struct session *session;
    struct saved_variables *saved;
    enum move_obstacle obstacle;
    bool has_state, has_pointers;
};

static void refuse(struct reading *reading, enum move_obstacle obstacle, const char *what,
                   const char *name)
{
    if (reading->obstacle)
        return;
    reading->obstacle = obstacle;
    session_log(reading->session, ": %s%s%s", what, name ? ": " : "", name ? name : "");
}

/* ---- what the modules are like ---- */

/* Clients write to constants, too. */
static bool may_have_changed(const struct session *session, const struct module *module)
{
    return module_has_state(module) || memory_lends(session, module);
}

static void look_at_module(void *context, uint64_t handle, void *object)
{
    struct reading *reading = context;
    const struct module *module = object;

    if (handle_type(handle) != WIRE_MODULE)
        return;
    reading->has_state |= may_have_changed(reading->session, module);
    reading->has_pointers |= module_library(module)->has_pointers;
}

bool session_has_variables(struct session *session)
{
    struct reading reading = {.session = session};

    handles_for_each(&session->objects, look_at_module, &reading);
    return reading.has_state;
}

/* ---- growing arrays ---- */

/* Room for `more` bytes behind the first `size`. */
static bool make_room(void **array, size_t size, size_t *capacity, size_t more)
{
    size_t wanted = *capacity ? *capacity : 4096;

    while (wanted < size + more)
        wanted *= 2;
    void *grown = wanted > *capacity ? realloc(*array, wanted) : *array;
    if (!grown)
        return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

static bool add_place(struct saved_variables *saved, const struct image_name *name,
                      const struct variable *variable)
{
    void *places = saved->places;

    if (!make_room(&places, saved->count * sizeof(*saved->places), &saved->places_capacity,
                   sizeof(*saved->places)))
        return false;
    saved->places = places;
    /* Pointers at which loops end lie behind the last byte. */
    saved->places[saved->count++] =
        (struct variable_place){variable->address, variable->size + 1, name->name};
    if (saved->count == 1 || variable->address < saved->first)
        saved->first = variable->address;
    if (variable->address + variable->size >= saved->end)
        saved->end = variable->address + variable->size + 1;
    return true;
}

static bool add_record(struct saved_variables *saved, uint64_t module, const char *name,
                       const struct variable_copy *copy)
{
    const struct saved_record record = {.module = module,
                                        .name_size = saved_round_up(strlen(name) + 1),
                                        .size = copy->variable->size};
    size_t all = sizeof(record) + record.name_size + saved_round_up(record.size);
    void *bytes = saved->bytes;

    if (saved->size + all > SAVED_VARIABLES_MAX ||
        !make_room(&bytes, saved->size, &saved->capacity, all))
        return false;
    saved->bytes = bytes;
    char *to = saved->bytes + saved->size;
    memset(to, 0, all);
    memcpy(to, &record, sizeof(record));
    strcpy(to + sizeof(record), name);
    memcpy(to + sizeof(record) + record.name_size, copy->bytes, record.size);
    saved->size += all;
    return true;
}

/* ---- the variables of a module ---- */

static void keep_changed(struct reading *reading, uint64_t handle, const struct image_name *name,
                         const struct variable_copy *copy)
{
    if (variable_is_initial(copy->variable, copy->bytes))
        return;
    if (name->relocated)
        refuse(reading, OBSTACLE_RELOCATED,
               "a variable has changed into which the load has written addresses", name->name);
    else if (!add_record(reading->saved, handle, name->name, copy))
        refuse(reading, OBSTACLE_VARIABLES, "its variables are too large to be copied", name->name);
}

static void read_module(struct reading *reading, uint64_t handle, const struct module *module,
                        const struct variables *variables)
{
    uint32_t count = variables->names.count;
    _cleanup_free_ struct variable_copy *copies = calloc(count, sizeof(*copies));
    _cleanup_free_ char *bytes = malloc(variables->bytes + 1);
    char *next = bytes;

    if (!copies || !bytes) {
        refuse(reading, OBSTACLE_VARIABLES, "too little memory to copy its variables", NULL);
        return;
    }
    for (uint32_t i = 0; i < count; next += variables->each[i].size, i++)
        copies[i] = (struct variable_copy){&variables->each[i], next};
    CUresult result = session_enter(reading->session, module->device);
    if (result == CUDA_SUCCESS)
        result = variables_read(copies, count, module->device->gate);
    if (result != CUDA_SUCCESS) {
        refuse(reading, OBSTACLE_VARIABLES, "its variables cannot be read",
               driver_error_name(result));
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        keep_changed(reading, handle, &variables->names.names[i], &copies[i]);
}

static void add_places(struct reading *reading, const struct variables *variables)
{
    for (uint32_t i = 0; i < variables->names.count; i++)
        if (!add_place(reading->saved, &variables->names.names[i], &variables->each[i]))
            refuse(reading, OBSTACLE_VARIABLES, "too little memory to copy its variables", NULL);
}

/* Before the driver has loaded a library, no kernel of it has run. */
static void save_module(void *context, uint64_t handle, void *object)
{
    struct reading *reading = context;
    const struct module *module = object;

    if (handle_type(handle) != WIRE_MODULE || reading->obstacle)
        return;
    const struct variables *variables = cached_variables(module->cached);
    if (cached_state(module->cached) == WIRE_STATE_LOST ||
        (!variables && may_have_changed(reading->session, module) &&
         cached_is_loaded(module->cached)))
        refuse(reading, OBSTACLE_VARIABLES,
               "a module has variables that are not known by name, or its kernels allocate", NULL);
    if (!variables)
        return;
    add_places(reading, variables);
    if (may_have_changed(reading->session, module))
        read_module(reading, handle, module, variables);
}

enum move_obstacle saved_variables_read(struct session *session, struct saved_variables *ret_saved)
{
    struct reading reading = {.session = session, .saved = ret_saved};

    *ret_saved = (struct saved_variables){0};
    handles_for_each(&session->objects, look_at_module, &reading);
    if (reading.has_pointers)
        refuse(&reading, OBSTACLE_POINTERS,
               "it has modules with variables, and code that calls functions through pointers",
               NULL);
    handles_for_each(&session->objects, save_module, &reading);
    return reading.obstacle;
}

void saved_variables_fini(struct saved_variables *saved)
{
    free(saved->bytes);
    free(saved->places);
    *saved = (struct saved_variables){0};
}

/* ---- addresses ---- */

const struct variable_place *saved_variables_place(const struct saved_variables *saved,
                                                   uint64_t address)
{
    if (address < saved->first || address >= saved->end)
        return NULL;
    for (size_t i = 0; i < saved->count; i++)
        if (address - saved->places[i].address < saved->places[i].size)
            return &saved->places[i];
    return NULL;
}

static uint64_t contents_address(const struct saved_variables *saved, const char *contents,
                                 uint64_t size)
{
    uint64_t word;

    for (uint64_t at = 0; size - at >= sizeof(word); at += sizeof(word)) {
        memcpy(&word, contents + at, sizeof(word));
        if (saved_variables_place(saved, word))
            return word;
    }
    return 0;
}

uint64_t saved_variables_address(const struct saved_variables *saved)
{
    struct saved_record record;
    uint64_t address = 0;

    for (size_t at = 0; at < saved->size && !address; at += saved_round_up(record.size)) {
        memcpy(&record, saved->bytes + at, sizeof(record));
        at += sizeof(record) + record.name_size;
        address = contents_address(saved, saved->bytes + at, record.size);
    }
    return address;
}
