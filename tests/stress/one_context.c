/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs programs of tests/api as threads of one process, without Funnel. So they share one context
 * of the driver as the programs of a server do. What fails here is the driver's.
 *
 *     one_context [--ordered] [--modules] SECONDS PROGRAM[=ARGUMENT]:COPIES ...
 *
 * Each copy is a library of its own, with its own variables, and runs again until the time is over.
 * The driver is the libcuda.so.1 that the loader finds. With `--ordered` each graph is launched
 * behind the last one, and none is changed or destroyed while one runs. The server does so with
 * conditional nodes. With `--modules` no code is loaded, asked for or unloaded beside one either.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cuda_prototypes.h"

#define COPIES_MAX 64

struct copy {
    pthread_t thread;
    const char *name;
    char *argument; /* NULL = none */
    int (*program)(int count, char **arguments);
    unsigned rounds, failed;
};

static struct copy copies[COPIES_MAX];
static unsigned copy_count;
static bool ordered, modules;
static struct timespec end;

/* ---- calls of the driver that are made differently ---- */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static CUevent last;

/* The driver's own function of that name. */
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

static CUresult launch_in_turn(CUgraphExec graph, CUstream stream)
{
    pthread_mutex_lock(&turn);
    CUresult result =
        last ? cuStreamWaitEvent(stream, last, 0) : cuEventCreate(&last, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS)
        result = NEXT(cuGraphLaunch)(graph, stream);
    if (result == CUDA_SUCCESS)
        result = cuEventRecord(last, stream);
    pthread_mutex_unlock(&turn);
    return result;
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream)
{
    return ordered ? launch_in_turn(graph, stream) : NEXT(cuGraphLaunch)(graph, stream);
}

/* Between these no graph runs, and none is launched. */
static void begin_quiet(void)
{
    if (!ordered)
        return;
    pthread_mutex_lock(&turn);
    if (last)
        cuEventSynchronize(last);
}

static CUresult end_quiet(CUresult result)
{
    if (ordered)
        pthread_mutex_unlock(&turn);
    return result;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    if (!modules)
        return NEXT(cuModuleLoadData)(module, image);
    begin_quiet();
    return end_quiet(NEXT(cuModuleLoadData)(module, image));
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    if (!modules)
        return NEXT(cuModuleGetFunction)(function, module, name);
    begin_quiet();
    return end_quiet(NEXT(cuModuleGetFunction)(function, module, name));
}

CUresult cuModuleUnload(CUmodule module)
{
    if (!modules)
        return NEXT(cuModuleUnload)(module);
    begin_quiet();
    return end_quiet(NEXT(cuModuleUnload)(module));
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    if (!modules)
        return NEXT(cuFuncSetAttribute)(function, attribute, value);
    begin_quiet();
    return end_quiet(NEXT(cuFuncSetAttribute)(function, attribute, value));
}

CUresult cuGraphExecDestroy(CUgraphExec graph)
{
    begin_quiet();
    return end_quiet(NEXT(cuGraphExecDestroy)(graph));
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec graph, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *params)
{
    begin_quiet();
    return end_quiet(NEXT(cuGraphExecKernelNodeSetParams_v2)(graph, node, params));
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    begin_quiet();
    return end_quiet(NEXT(cuGraphExecUpdate_v2)(exec, graph, info));
}

CUresult cuGraphNodeSetEnabled(CUgraphExec graph, CUgraphNode node, unsigned enabled)
{
    begin_quiet();
    return end_quiet(NEXT(cuGraphNodeSetEnabled)(graph, node, enabled));
}

/* The other programs' work is in this context, too, and they capture, which such a call would
 * break. What a program here waits for so is in the legacy stream. */
CUresult cuCtxSynchronize(void)
{
    return cuStreamSynchronize(NULL);
}

/* ---- the programs ---- */

static bool is_over(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec);
}

static void *run_copy(void *argument)
{
    struct copy *copy = argument;
    char *arguments[] = {(char *)copy->name, copy->argument, NULL};

    while (!is_over() && !copy->failed) {
        copy->failed += copy->program(copy->argument ? 2 : 1, arguments) != EXIT_SUCCESS;
        copy->rounds++;
    }
    return NULL;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "one_context: %s: %s\n", what, why);
    exit(2);
}

/* The loader takes a file that it has loaded already for the same library. */
static void *open_copy(const char *path)
{
    int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("copy", MFD_CLOEXEC);
    struct stat status;
    char name[64];

    if (from < 0 || to < 0 || fstat(from, &status) ||
        sendfile(to, from, NULL, (size_t)status.st_size) != status.st_size)
        die(path, strerror(errno));
    close(from);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", to);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        die(path, dlerror());
    return library;
}

static void load_copy(const char *folder, const char *name, char *argument)
{
    struct copy *copy = &copies[copy_count++];
    char path[256];

    snprintf(path, sizeof(path), "%s/one_context_%s.so", folder, name);
    copy->name = name;
    copy->argument = argument;
    copy->program = (int (*)(int, char **))dlsym(open_copy(path), "main");
    if (!copy->program)
        die(path, "has no main()");
}

/* NAME[=ARGUMENT][:COPIES] */
static void load_copies(const char *folder, char *text)
{
    char *colon = strchr(text, ':'), *argument = strchr(text, '=');
    int count = colon ? atoi(colon + 1) : 1;

    if (colon)
        *colon = '\0';
    if (argument)
        *argument++ = '\0';
    if (count < 1 || copy_count + (unsigned)count > COPIES_MAX)
        die(text, "not from 1 to 64 copies");
    for (int i = 0; i < count; i++)
        load_copy(folder, text, argument);
}

/* What the programs share is made before and outlives them. */
static void retain_context(void)
{
    CUcontext context;
    CUdevice device;

    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS)
        die("cuInit", "no device");
}

static int run_copies(void)
{
    unsigned failed = 0;

    for (unsigned i = 0; i < copy_count; i++)
        if (pthread_create(&copies[i].thread, NULL, run_copy, &copies[i]))
            die("pthread_create", "failed");
    for (unsigned i = 0; i < copy_count; i++) {
        pthread_join(copies[i].thread, NULL);
        failed += copies[i].failed;
    }
    printf("rounds:");
    for (unsigned i = 0; i < copy_count; i++) {
        bool same = i && strcmp(copies[i].name, copies[i - 1].name) == 0;

        printf(" %s%s%u", same ? "" : copies[i].name, same ? "" : " ", copies[i].rounds);
    }
    printf("; %u failed\n", failed);
    fflush(stdout);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int count, char **arguments)
{
    int next = 1;

    for (; next < count && arguments[next][0] == '-'; next++) {
        ordered |= strcmp(arguments[next], "--ordered") == 0;
        modules |= strcmp(arguments[next], "--modules") == 0;
    }
    if (count - next < 2)
        die("usage", "one_context [--ordered] [--modules] SECONDS PROGRAM[=ARGUMENT]:COPIES ...");
    char *slash = strrchr(arguments[0], '/');
    if (slash)
        *slash = '\0';
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += atoi(arguments[next]);
    for (int i = next + 1; i < count; i++)
        load_copies(slash ? arguments[0] : ".", arguments[i]);
    retain_context();
    /* The driver need not end well after a fault. */
    _exit(run_copies());
}
