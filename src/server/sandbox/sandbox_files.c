/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's driver 580 was seen to open only these files (docs/sandbox.md). Home directories, /tmp
 * and the files of other processes are excluded.
 */
#include "sandbox_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "code_directory.h"
#include "fd.h"
#include "landlock.h"
#include "text.h"

static const char *const readable[] = {
    "/usr",           "/lib",        "/lib32",      "/lib64",
    "/opt",           "/nix/store",  "/run/nvidia", "/etc/ld.so.cache",
    "/etc/localtime", "/etc/nvidia", "/etc/OpenCL", "/etc/alternatives",
    "/proc",          "/sys",
};

/* The driver writes names of threads there; files of other processes stay closed. */
static const char *const writable[] = {"/dev", "/proc/self"};

static int allow_all(const struct landlock_ruleset *ruleset, const char *const *paths, size_t count,
                     enum landlock_rights rights)
{
    int error = 0;

    for (size_t i = 0; !error && i < count; i++)
        error = landlock_allow(ruleset, paths[i], rights);
    return error;
}

/* The directory of `path`, where it has one. */
static int allow_directory_of(const struct landlock_ruleset *ruleset, const char *path,
                              enum landlock_rights rights)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');

    if (!slash || !text_format(directory, sizeof(directory), "%.*s/", (int)(slash - path), path))
        return 0;
    return landlock_allow(ruleset, directory, rights);
}

/* The parent of the program's folder contains the program and the software GPU. */
static int allow_own_files(const struct landlock_ruleset *ruleset)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (length < 0)
        return 0;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash || !text_copy(slash, sizeof(path) - (size_t)(slash - path), "/../lib/funnel"))
        return 0;
    return landlock_allow(ruleset, path, LANDLOCK_READ);
}

static int allow_libraries(const struct landlock_ruleset *ruleset)
{
    const char *chosen = getenv("FUNNEL_DRIVER"), *list = getenv("LD_LIBRARY_PATH");
    int error = chosen ? allow_directory_of(ruleset, chosen, LANDLOCK_READ) : 0;
    char path[PATH_MAX];

    for (size_t length; !error && list && *list; list += length + (list[length] != '\0')) {
        length = strcspn(list, ":;");
        if (length && text_format(path, sizeof(path), "%.*s", (int)length, list))
            error = landlock_allow(ruleset, path, LANDLOCK_READ);
    }
    return error;
}

static bool driver_cache_path(char *ret_path, size_t capacity)
{
    const char *chosen = getenv("CUDA_CACHE_PATH"), *home = getenv("HOME");

    if (chosen && *chosen)
        return text_copy(ret_path, capacity, chosen);
    return home && *home && text_format(ret_path, capacity, "%s/.nv", home);
}

/* The driver creates the directory at its first compilation, but a rule needs an existing one. */
static int allow_driver_cache(const struct landlock_ruleset *ruleset)
{
    char path[PATH_MAX];

    if (access("/dev/nvidiactl", F_OK) || !driver_cache_path(path, sizeof(path)))
        return 0;
    mkdir(path, 0700);
    return landlock_allow(ruleset, path, LANDLOCK_CHANGE);
}

/* The code cache reports errors of the directory. */
static int allow_code_cache(const struct landlock_ruleset *ruleset)
{
    struct code_directory directory;
    char path[PATH_MAX];

    if (code_directory_is_off() || !code_directory_path(path, sizeof(path)))
        return 0;
    if (code_directory_open(&directory, path, true) == 0)
        code_directory_close(&directory);
    return landlock_allow(ruleset, path, LANDLOCK_CHANGE);
}

/* The file of a driver's own log, which has to exist before a rule can name it. */
static int allow_log(const struct landlock_ruleset *ruleset, const char *variable)
{
    const char *path = getenv(variable);
    _cleanup_fd_ int fd = -1;

    if (!path || !strchr(path, '/'))
        return 0;
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    return fd < 0 ? 0 : landlock_allow(ruleset, path, LANDLOCK_WRITE);
}

static int allow_files(const struct landlock_ruleset *ruleset, const char *listen_path)
{
    int error = allow_all(ruleset, readable, sizeof(readable) / sizeof(*readable), LANDLOCK_READ);

    if (!error)
        error = allow_all(ruleset, writable, sizeof(writable) / sizeof(*writable), LANDLOCK_WRITE);
    if (!error)
        error = allow_own_files(ruleset);
    if (!error)
        error = allow_libraries(ruleset);
    if (!error)
        error = allow_driver_cache(ruleset);
    if (!error)
        error = allow_code_cache(ruleset);
    if (!error)
        error = allow_log(ruleset, "CUDA_LOG_FILE");
    if (!error)
        error = allow_log(ruleset, "FUNNEL_SOFT_LOG");
    if (!error && listen_path)
        error = allow_directory_of(ruleset, listen_path, LANDLOCK_CHANGE);
    return error;
}

int sandbox_files_confine(const char *listen_path)
{
    struct landlock_ruleset ruleset;
    int error = landlock_begin(&ruleset);

    if (error)
        return error;
    error = allow_files(&ruleset, listen_path);
    if (!error)
        error = landlock_enter(&ruleset);
    fd_close(&ruleset.fd);
    return error;
}
