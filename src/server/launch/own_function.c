/* SPDX-License-Identifier: Apache-2.0 */
/* See own_function.h. */
#include "own_function.h"

#include <stdlib.h>
#include <string.h>

struct function *own_function_create(CUfunction made, const char *name, uint32_t params_size)
{
    struct function *function = calloc(1, sizeof(*function) + strlen(name) + 1);

    if (!function)
        return NULL;
    function->driver = made;
    function->params_size = params_size;
    strcpy(function->name, name);
    return function;
}
