/* SPDX-License-Identifier: Apache-2.0 */
/* See system_library.h. */
#include "system_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "text.h"

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

static bool own_file(const void *address, struct stat *ret_status)
{
    Dl_info info;

    return dladdr(address, &info) && info.dli_fname && stat(info.dli_fname, ret_status) == 0;
}

static bool is_own_file(const void *address, const char *path)
{
    struct stat own, other;

    return stat(path, &other) == 0 && own_file(address, &own) && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

/* A second copy of the library that asks would pass calls on to a third, and so on. */
static void *open_path(const struct system_library *wanted, const char *path)
{
    void *library;

    if (is_own_file(wanted->own, path))
        return NULL;
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL | wanted->flags);
    if (library && wanted->is_funnel(library)) {
        dlclose(library);
        return NULL;
    }
    return library;
}

/* From one of a colon-separated list of folders. */
static void *open_in_list(const struct system_library *wanted, const char *list)
{
    while (list && *list) {
        const char *end = strchrnul(list, ':');
        char path[PATH_MAX];
        void *library = NULL;

        if (text_format(path, sizeof(path), "%.*s/%s", (int)(end - list), list, wanted->name))
            library = open_path(wanted, path);
        if (library)
            return library;
        list = *end ? end + 1 : NULL;
    }
    return NULL;
}

void *system_library_open(const struct system_library *wanted)
{
    const char *named = secure_getenv(wanted->variable);
    void *library;

    if (named && *named)
        return open_path(wanted, named);
    library = open_in_list(wanted, secure_getenv("LD_LIBRARY_PATH"));
    for (size_t i = 0; !library && i < sizeof(folders) / sizeof(*folders); i++)
        library = open_in_list(wanted, folders[i]);
    return library;
}
