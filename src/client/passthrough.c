/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding NVIDIA's library. This library has the same name, so the linker would return this one:
 * the driver is searched by absolute path, and this library's own file is skipped.
 */
#include "passthrough.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "passthrough_table.h"
#include "text.h"

#define DRIVER_NAME "libcuda.so.1"

static const char *const folders[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/nvidia",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/lib",
    "/usr/local/cuda/compat",
};

static bool own_file(struct stat *ret_status)
{
    Dl_info info;

    return dladdr((void *)passthrough_open, &info) && info.dli_fname &&
           stat(info.dli_fname, ret_status) == 0;
}

static bool is_ourselves(const char *path)
{
    struct stat own, other;

    return stat(path, &other) == 0 && own_file(&own) && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

const CUuuid passthrough_signature = {"\xf0\x0e\x1a funnel here"};

/* A second copy of this library would pass calls on to a third, and so on. Each knows the
 * signature, for which no driver has a table. */
static bool is_funnel(void *library)
{
    CUresult (*get_table)(const void **, const CUuuid *) = dlsym(library, "cuGetExportTable");
    const void *table;

    return get_table && get_table(&table, &passthrough_signature) == CUDA_SUCCESS;
}

static void *open_driver(const char *path)
{
    void *library;

    if (is_ourselves(path))
        return NULL;
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library && is_funnel(library)) {
        dlclose(library);
        return NULL;
    }
    return library;
}

/* One of a colon-separated list of folders. */
static void *open_in_list(const char *list)
{
    while (list && *list) {
        const char *end = strchrnul(list, ':');
        char path[4096];
        void *library = NULL;

        if (text_format(path, sizeof(path), "%.*s/%s", (int)(end - list), list, DRIVER_NAME))
            library = open_driver(path);
        if (library)
            return library;
        list = *end ? end + 1 : NULL;
    }
    return NULL;
}

static void *find_driver(void)
{
    const char *named = secure_getenv("FUNNEL_DRIVER");
    void *library;

    if (named && *named)
        return open_driver(named);
    library = open_in_list(secure_getenv("LD_LIBRARY_PATH"));
    for (size_t i = 0; !library && i < sizeof(folders) / sizeof(*folders); i++)
        library = open_in_list(folders[i]);
    return library;
}

int passthrough_open(void)
{
    void *library = find_driver();

    if (!library)
        return -ENOENT;
    passthrough_load(library);
    return passthrough.cuInit ? 0 : -ENOENT;
}

CUresult passthrough_init(unsigned flags)
{
    return passthrough.cuInit(flags);
}

CUresult passthrough_driver_version(int *ret_version)
{
    return passthrough.cuDriverGetVersion ? passthrough.cuDriverGetVersion(ret_version)
                                          : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult passthrough_get_export_table(const void **ret_table, const CUuuid *id)
{
    return passthrough.cuGetExportTable ? passthrough.cuGetExportTable(ret_table, id)
                                        : CUDA_ERROR_INVALID_VALUE;
}
