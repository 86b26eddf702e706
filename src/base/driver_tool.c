/* SPDX-License-Identifier: Apache-2.0 */
/* See driver_tool.h. */
#include "driver_tool.h"

#include <stdlib.h>
#include <string.h>

/* How the names of their libraries begin. */
static const char *const beginnings[] = {"libToolsInjection", "libcuda-injection", "libsanitizer",
                                         "libInterceptorInjection", "libTreeLauncher"};

const char *driver_tool_path(void)
{
    const char *path = secure_getenv("CUDA_INJECTION64_PATH");

    return path && *path ? path : NULL;
}

bool driver_tool_is_nvidias(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    for (unsigned i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++)
        if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
            return true;
    return false;
}
