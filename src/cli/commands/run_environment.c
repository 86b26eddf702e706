/* SPDX-License-Identifier: Apache-2.0 */
/* See run_environment.h. */
#include "run_environment.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "paths.h"
#include "text.h"

#define CLIENT_LIBRARY "lib/funnel/libcuda.so.1"
#define SOFT_LIBRARY "lib/funnel/softgpu/libcuda.so.1"
#define NVML_LIBRARY "lib/funnel/nvml/libnvidia-ml.so.1"

/* A program links one of the two; a library that is loaded already comes before all of its name. */
#define CUPTI_12_LIBRARY "lib/funnel/cupti12/libcupti.so.12"
#define CUPTI_13_LIBRARY "lib/funnel/cupti13/libcupti.so.13"

static int folder_of(const char *path, char *ret_folder, size_t capacity)
{
    if (!text_copy(ret_folder, capacity, path))
        return -ENAMETOOLONG;
    *strrchr(ret_folder, '/') = '\0';
    return 0;
}

static bool is_ours(const char *item)
{
    static const char *const libraries[] = {CLIENT_LIBRARY, SOFT_LIBRARY, NVML_LIBRARY,
                                            CUPTI_12_LIBRARY, CUPTI_13_LIBRARY};
    char path[PATH_MAX], folder[PATH_MAX];

    for (unsigned i = 0; i < sizeof(libraries) / sizeof(*libraries); i++)
        if (!path_of_sibling(libraries[i], path, sizeof(path)) &&
            !folder_of(path, folder, sizeof(folder)) &&
            (!strcmp(item, path) || !strcmp(item, folder)))
            return true;
    return false;
}

static int append_item(char *list, size_t capacity, const char *item)
{
    size_t length = strlen(list);

    return text_format(list + length, capacity - length, "%s%s", length ? ":" : "", item)
               ? 0
               : -ENAMETOOLONG;
}

/* Puts `list` before what the variable has, less what an outer `funnel run` put there. */
static int prepend(const char *variable, char *list, size_t capacity, const char *separators)
{
    const char *old = getenv(variable);
    char *copy = old ? strdup(old) : NULL;
    char *rest = NULL;
    int error = 0;

    for (char *item = copy ? strtok_r(copy, separators, &rest) : NULL; item && !error;
         item = strtok_r(NULL, separators, &rest))
        if (!is_ours(item))
            error = append_item(list, capacity, item);
    free(copy);
    if (!error && *list)
        error = setenv(variable, list, 1) ? -errno : 0;
    else if (!error)
        unsetenv(variable);
    return error;
}

#define LIST_MAX 32768

/* 0; -errno; -ENOENT where the installation lacks it. */
static int add_library(const char *library, char *files, char *folders)
{
    char path[PATH_MAX], folder[PATH_MAX];
    int error = path_of_sibling(library, path, sizeof(path));

    if (!error && access(path, R_OK))
        return -ENOENT;
    if (!error)
        error = folder_of(path, folder, sizeof(folder));
    if (!error)
        error = append_item(files, LIST_MAX, path);
    return error ? error : append_item(folders, LIST_MAX, folder);
}

static int add_profilers(char *files, char *folders)
{
    int error = add_library(CUPTI_12_LIBRARY, files, folders);

    return error ? error : add_library(CUPTI_13_LIBRARY, files, folders);
}

static const char *path_of_driver(enum run_driver driver)
{
    switch (driver) {
    case RUN_DRIVER_FUNNEL:
        return CLIENT_LIBRARY;
    case RUN_DRIVER_SOFT:
        return SOFT_LIBRARY;
    default:
        return NULL;
    }
}

static int list_libraries(const struct run_libraries *libraries, char *files, char *folders)
{
    const char *driver = path_of_driver(libraries->driver);
    int error = libraries->nvml ? add_library(NVML_LIBRARY, files, folders) : 0;

    if (!error && driver)
        error = add_library(driver, files, folders);
    return !error && libraries->profilers ? add_profilers(files, folders) : error;
}

int run_environment_put_first(const struct run_libraries *libraries)
{
    static char files[LIST_MAX], folders[LIST_MAX];
    int error;

    *files = *folders = '\0';
    error = list_libraries(libraries, files, folders);
    if (error == -ENOENT)
        return cli_fail("a library is missing: the installation is incomplete");
    if (!error)
        error = prepend("LD_PRELOAD", files, LIST_MAX, ": ");
    if (!error)
        error = prepend("LD_LIBRARY_PATH", folders, LIST_MAX, ":");
    return error ? cli_fail("cannot set the environment: %s", strerror(-error)) : 0;
}

int run_environment_show_soft(void)
{
    if (setenv("FUNNEL_NVML", "soft", 0))
        return cli_fail("cannot set the environment: %s", strerror(errno));
    return 0;
}

int run_environment_name_cupti(void)
{
    char path[PATH_MAX], folder[PATH_MAX];
    int error = path_of_sibling(CUPTI_12_LIBRARY, path, sizeof(path));

    if (!error)
        error = folder_of(path, folder, sizeof(folder));
    if (!error && setenv("TRITON_CUPTI_LIB_PATH", folder, 0))
        error = -errno;
    return error ? cli_fail("cannot set the environment: %s", strerror(-error)) : 0;
}

int run_environment_record_ranges(void)
{
    char path[PATH_MAX];
    int error = path_of_sibling(CLIENT_LIBRARY, path, sizeof(path));

    return error || setenv("NVTX_INJECTION64_PATH", path, 0) ? -1 : 0;
}
