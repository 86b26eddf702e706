/* SPDX-License-Identifier: Apache-2.0 */
/* Copies use a separate stream, so that they do not wait for clients' work. */
#include "variables.h"

#include <stdlib.h>
#include <string.h>

#include "gate.h"

static CUresult find_variable(const struct image_name *name, CUlibrary library,
                              struct variable *variable)
{
    CUresult result =
        driver.cuLibraryGetGlobal(&variable->address, &variable->size, library, name->name);

    /* If another object had this name, the variable would keep the values of its client. */
    if (result == CUDA_SUCCESS && name->size && name->size != variable->size)
        return CUDA_ERROR_NOT_FOUND;
    return result;
}

static CUresult find_all(struct variables *variables, CUlibrary library)
{
    CUresult result = CUDA_SUCCESS;

    variables->bytes = 0;
    for (uint32_t i = 0; i < variables->names.count && result == CUDA_SUCCESS; i++) {
        struct variable *variable = &variables->each[i];

        result = find_variable(&variables->names.names[i], library, variable);
        if (result == CUDA_SUCCESS && variable->size > VARIABLES_BYTES_MAX - variables->bytes)
            return CUDA_ERROR_OUT_OF_MEMORY;
        variables->bytes += variable->size;
    }
    return result;
}

static CUresult with_stream(CUresult (*copy)(const struct variable *variable, CUstream stream),
                            const struct variables *variables)
{
    CUstream stream = NULL;
    CUresult result = driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);

    if (result != CUDA_SUCCESS)
        return result;
    for (uint32_t i = 0; i < variables->names.count && result == CUDA_SUCCESS; i++)
        result = copy(&variables->each[i], stream);
    CUresult last = driver.cuStreamSynchronize(stream);
    driver.cuStreamDestroy_v2(stream);
    return result != CUDA_SUCCESS ? result : last;
}

static CUresult copy_out(const struct variable *variable, CUstream stream)
{
    return driver.cuMemcpyAsync((uintptr_t)variable->initial, variable->address, variable->size,
                                stream);
}

static CUresult copy_in(const struct variable *variable, CUstream stream)
{
    if (!variable->initial)
        return driver.cuMemsetD8Async(variable->address, 0, variable->size, stream);
    return driver.cuMemcpyAsync(variable->address, (uintptr_t)variable->initial, variable->size,
                                stream);
}

static CUresult reserve_variables(struct variables *variables)
{
    for (uint32_t i = 0; i < variables->names.count; i++) {
        variables->each[i].initial = malloc(variables->each[i].size);
        if (!variables->each[i].initial)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

static bool is_zeros(const char *bytes, size_t size)
{
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static void forget_zeros(struct variables *variables)
{
    for (uint32_t i = 0; i < variables->names.count; i++) {
        struct variable *variable = &variables->each[i];

        if (!is_zeros(variable->initial, variable->size))
            continue;
        free(variable->initial);
        variable->initial = NULL;
    }
}

static void forget_variables(struct variables *variables)
{
    for (uint32_t i = 0; variables->each && i < variables->names.count; i++)
        free(variables->each[i].initial);
    free(variables->each);
    variables->each = NULL;
}

CUresult variables_remember(struct variables *variables, CUlibrary library)
{
    variables->each = calloc(variables->names.count, sizeof(*variables->each));
    CUresult result = variables->each ? find_all(variables, library) : CUDA_ERROR_OUT_OF_MEMORY;

    if (result == CUDA_SUCCESS)
        result = reserve_variables(variables);
    if (result == CUDA_SUCCESS)
        result = with_stream(copy_out, variables);
    if (result == CUDA_SUCCESS)
        forget_zeros(variables);
    else
        forget_variables(variables);
    return result;
}

CUresult variables_restore(const struct variables *variables, struct gate *gate)
{
    CUresult result = variables->each ? gate_close(gate, "Copying variables") : CUDA_SUCCESS;

    if (result != CUDA_SUCCESS || !variables->each)
        return result;
    result = with_stream(copy_in, variables);
    gate_open(gate);
    return result;
}

/* ---- single variables ---- */

CUresult variable_copy_initial(const struct variable *variable, CUdeviceptr to, struct gate *gate)
{
    struct variable copy = {to, variable->size, variable->initial};
    const struct variables only = {.names = {.count = 1}, .each = &copy};

    return variables_restore(&only, gate);
}

typedef CUresult copy_variable(const struct variable_copy *copy, CUstream stream);

static CUresult read_variable(const struct variable_copy *copy, CUstream stream)
{
    return driver.cuMemcpyAsync((uintptr_t)copy->bytes, copy->variable->address,
                                copy->variable->size, stream);
}

static CUresult write_variable(const struct variable_copy *copy, CUstream stream)
{
    return driver.cuMemcpyAsync(copy->variable->address, (uintptr_t)copy->bytes,
                                copy->variable->size, stream);
}

static CUresult copy_all(copy_variable *copy, const struct variable_copy *copies, uint32_t count)
{
    CUstream stream = NULL;
    CUresult result = driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);

    if (result != CUDA_SUCCESS)
        return result;
    for (uint32_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = copy(&copies[i], stream);
    CUresult last = driver.cuStreamSynchronize(stream);
    driver.cuStreamDestroy_v2(stream);
    return result != CUDA_SUCCESS ? result : last;
}

static CUresult copy_behind_gate(copy_variable *copy, const struct variable_copy *copies,
                                 uint32_t count, struct gate *gate)
{
    CUresult result = count ? gate_close(gate, "Copying variables") : CUDA_SUCCESS;

    if (result != CUDA_SUCCESS || !count)
        return result;
    result = copy_all(copy, copies, count);
    gate_open(gate);
    return result;
}

CUresult variables_read(const struct variable_copy *copies, uint32_t count, struct gate *gate)
{
    return copy_behind_gate(read_variable, copies, count, gate);
}

CUresult variables_write(const struct variable_copy *copies, uint32_t count, struct gate *gate)
{
    return copy_behind_gate(write_variable, copies, count, gate);
}

bool variable_is_initial(const struct variable *variable, const void *bytes)
{
    return variable->initial ? memcmp(variable->initial, bytes, variable->size) == 0
                             : is_zeros(bytes, variable->size);
}

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, ((const struct image_name *)entry)->name);
}

/* The names are sorted: image_names_merge(). */
const struct variable *variables_find(const struct variables *variables, const char *name)
{
    const struct image_names *names = &variables->names;
    const struct image_name *found =
        variables->each ? bsearch(name, names->names, names->count, sizeof(*found), compare_name)
                        : NULL;

    return found ? &variables->each[found - names->names] : NULL;
}

bool variable_is_relocated(const struct variables *variables, const struct variable *variable)
{
    return variables->names.names[variable - variables->each].relocated;
}

void variables_fini(struct variables *variables)
{
    forget_variables(variables);
    image_names_fini(&variables->names);
}
