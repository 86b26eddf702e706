/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a CUDA driver library and fills the table of its entry points. The library is always opened
 * by its full path where one is known. Our own client library has the same name, and a search by
 * name could find it.
 */
#include "loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "text.h"

#define DRIVER_LINES_A_SECOND 20

struct driver_table driver;
struct driver_extension driver_extension;

static char loaded_path[PATH_MAX];

/* Where distributions and containers put NVIDIA's library; the last one asks the linker's cache. */
static const char *const system_paths[] = {
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
    "/usr/lib64/libcuda.so.1",
    "/usr/lib/libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/run/opengl-driver/lib/libcuda.so.1",
    "libcuda.so.1",
};

int driver_kind_parse(const char *text, enum driver_kind *ret_kind)
{
    static const char *const names[] = {
        [DRIVER_AUTO] = "auto", [DRIVER_CUDA] = "cuda", [DRIVER_SOFT] = "soft"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!strcmp(text, names[i])) {
            *ret_kind = (enum driver_kind)i;
            return 0;
        }
    }
    return -EINVAL;
}

const char *driver_path(void)
{
    return loaded_path;
}

/* `relative` to the folder of this program: build and installation have the same shape. */
static int sibling_path(const char *relative, char *ret_path, size_t size)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (length < 0)
        return -errno;
    self[length] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    return text_format(ret_path, size, "%s/%s", self, relative) ? 0 : -ENAMETOOLONG;
}

static bool same_file(const char *a, const char *b)
{
    struct stat stat_a, stat_b;

    return !stat(a, &stat_a) && !stat(b, &stat_b) && stat_a.st_dev == stat_b.st_dev &&
           stat_a.st_ino == stat_b.st_ino;
}

/* Is this our client library, found in the driver's place? */
static bool is_own_client(const char *path)
{
    char own[PATH_MAX];

    return !sibling_path("../lib/funnel/libcuda.so.1", own, sizeof(own)) && same_file(path, own);
}

static void *open_library(const char *path, char *why, size_t why_size)
{
    struct link_map *map = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        text_format(why, why_size, "%s", dlerror());
        return NULL;
    }
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) || is_own_client(map->l_name)) {
        text_format(why, why_size, "%s is Funnel's client library, not a driver", path);
        dlclose(library);
        return NULL;
    }
    text_copy(loaded_path, sizeof(loaded_path), map->l_name);
    return library;
}

static _Thread_local bool refusal_expected;

void driver_expect_refusal(bool expected)
{
    refusal_expected = expected;
}

/* Clients may cause errors at any rate; the log takes only some a second. */
static bool within_rate(void)
{
    static atomic_uint_fast64_t second;
    static atomic_uint lines;
    uint64_t now = clock_ns() / NS_PER_SEC;

    if (atomic_exchange(&second, now) != now)
        atomic_store(&lines, 0);
    return atomic_fetch_add(&lines, 1) < DRIVER_LINES_A_SECOND;
}

/* A newer driver explains a fault beyond its error code. */
static void log_message(void *unused, CUlogLevel level, char *message, size_t length)
{
    if (!refusal_expected && within_rate())
        log_line("Driver: %.*s", (int)length, message);
}

/* The server logs the errors of clients. */
static void load_extension(void *library)
{
    void (*errors_are_logged)(void);

    *(void **)&errors_are_logged = dlsym(library, "funnelErrorsAreLogged");
    if (errors_are_logged)
        errors_are_logged();
    *(void **)&driver_extension.set_launch_owner = dlsym(library, "funnelSetLaunchOwner");
    *(void **)&driver_extension.forget_launch_owner = dlsym(library, "funnelForgetLaunchOwner");
    *(void **)&driver_extension.abort_launches = dlsym(library, "funnelAbortLaunches");
}

static int start_driver(void *library, char *why, size_t why_size)
{
    int devices = 0;

    if (driver_table_load(&driver, library, why, why_size))
        return -ENOSYS;
    load_extension(library);

    CUresult result = driver.cuInit(0);
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetCount(&devices);
    if (result != CUDA_SUCCESS) {
        text_format(why, why_size, "%s does not start: %s", loaded_path, driver_error_name(result));
        return -EIO;
    }
    if (devices == 0) {
        text_format(why, why_size, "%s finds no device", loaded_path);
        return -ENODEV;
    }
    if (driver.cuLogsRegisterCallback)
        driver.cuLogsRegisterCallback(log_message, NULL, NULL);
    return 0;
}

static int load_path(const char *path, char *why, size_t why_size)
{
    void *library = open_library(path, why, why_size);

    if (!library)
        return -ENOENT;
    int error = start_driver(library, why, why_size);
    if (error) {
        dlclose(library);
        memset(&driver, 0, sizeof(driver));
    }
    return error;
}

static int load_cuda(char *why, size_t why_size)
{
    const char *chosen = getenv("FUNNEL_DRIVER");

    if (chosen && *chosen)
        return load_path(chosen, why, why_size);

    for (unsigned i = 0; i < sizeof(system_paths) / sizeof(system_paths[0]); i++) {
        if (strchr(system_paths[i], '/') && access(system_paths[i], F_OK))
            continue;
        int error = load_path(system_paths[i], why, why_size);
        if (!error || i + 1 == sizeof(system_paths) / sizeof(system_paths[0]))
            return error;
        log_line("Driver library %s is not used: %s", system_paths[i], why);
    }
    return -ENOENT;
}

static int load_soft(char *why, size_t why_size)
{
    char path[PATH_MAX];
    int error = sibling_path("../lib/funnel/softgpu/libcuda.so.1", path, sizeof(path));

    return error ? error : load_path(path, why, why_size);
}

static void add_remedy(char *why, size_t why_size)
{
    size_t length = strlen(why);

    text_copy(why + length, why_size - length, "; --device soft needs no driver of NVIDIA's");
}

int driver_load(enum driver_kind wanted, enum driver_kind *ret_kind, char *why, size_t why_size)
{
    int error = -ENOENT;

    if (wanted != DRIVER_SOFT) {
        error = load_cuda(why, why_size);
        if (!error)
            *ret_kind = DRIVER_CUDA;
    }
    if (error == -ENOENT && wanted == DRIVER_CUDA)
        add_remedy(why, why_size);
    if (error && wanted == DRIVER_AUTO)
        log_line("No NVIDIA driver, using the software GPU (%s)", why);
    if (error && wanted != DRIVER_CUDA) {
        error = load_soft(why, why_size);
        if (!error)
            *ret_kind = DRIVER_SOFT;
    }
    return error;
}

const char *driver_error_name(CUresult result)
{
    const char *name = NULL;

    if (!driver.cuGetErrorName || driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
        return "unknown error";
    return name;
}
