/* SPDX-License-Identifier: Apache-2.0 */
/* See run_tool.h. A tool that starts a program names a library of its own to CUDA's driver. */
#include "run_tool.h"

#include <stddef.h>
#include <string.h>

#include "driver_tool.h"

static const char *const tools[] = {"ncu", "nsys", "compute-sanitizer", "cuda-gdb", "nvprof"};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

const char *run_tool_find(const char *program)
{
    const char *injection = driver_tool_path();

    for (unsigned i = 0; i < sizeof(tools) / sizeof(*tools); i++)
        if (!strcmp(base_name(program), tools[i]))
            return tools[i];
    return injection && driver_tool_is_nvidias(injection) ? base_name(injection) : NULL;
}

const char *run_tool_library(void)
{
    const char *injection = driver_tool_path();

    return injection && !driver_tool_is_nvidias(injection) ? base_name(injection) : NULL;
}
