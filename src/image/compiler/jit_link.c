/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses a few functions that every version of the library has. Where the PTX names an architecture
 * with a letter, such as sm_90a, it is compiled for that: such PTX runs on no other device.
 */
#include "jit_link.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "text.h"

/* nvJitLink.h: nvJitLinkResult, nvJitLinkInputType. */
#define SUCCESS 0
#define INPUT_PTX 2

#define OPTIONS_MAX 5

typedef struct nvJitLink *jit_handle;

static struct {
    int (*create)(jit_handle *handle, uint32_t count, const char **options);
    int (*add_data)(jit_handle handle, int type, const void *data, size_t size, const char *name);
    int (*complete)(jit_handle handle);
    int (*get_cubin_size)(jit_handle handle, size_t *size);
    int (*get_cubin)(jit_handle handle, void *cubin);
    int (*get_log_size)(jit_handle handle, size_t *size);
    int (*get_log)(jit_handle handle, char *log);
} jit;

struct symbol {
    const char *name;
    void **function;
};

static int find_symbols(void *library)
{
    const struct symbol symbols[] = {
        {"nvJitLinkCreate", (void **)&jit.create},
        {"nvJitLinkAddData", (void **)&jit.add_data},
        {"nvJitLinkComplete", (void **)&jit.complete},
        {"nvJitLinkGetLinkedCubinSize", (void **)&jit.get_cubin_size},
        {"nvJitLinkGetLinkedCubin", (void **)&jit.get_cubin},
        {"nvJitLinkGetErrorLogSize", (void **)&jit.get_log_size},
        {"nvJitLinkGetErrorLog", (void **)&jit.get_log},
    };

    for (unsigned i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
        *symbols[i].function = dlsym(library, symbols[i].name);
        if (!*symbols[i].function)
            return -ENOENT;
    }
    return 0;
}

int jit_link_open(const char *path, char *why, size_t why_size)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int error = library ? find_symbols(library) : -ENOENT;

    if (error)
        text_format(why, why_size, "%s", dlerror());
    return error;
}

/* The letter behind the number in ".target sm_90a", or "". */
static const char *behind_target(const char *ptx)
{
    const char *target = strstr(ptx, ".target");

    if (!target)
        return "";
    target += strlen(".target");
    target += strspn(target, " \t");
    if (strncmp(target, "sm_", 3))
        return "";
    target += 3;
    return target + strspn(target, "0123456789");
}

struct option_list {
    char texts[OPTIONS_MAX][40];
    const char *options[OPTIONS_MAX];
    uint32_t count;
};

static char *next_option(struct option_list *list)
{
    char *text = list->texts[list->count];

    list->options[list->count++] = text;
    return text;
}

static void list_options(const char *ptx, const struct jit_link_options *options,
                         struct option_list *ret_list)
{
    const size_t size = sizeof(ret_list->texts[0]);
    const char *letter = behind_target(ptx);

    ret_list->count = 0;
    text_format(next_option(ret_list), size, "-arch=sm_%u%.*s", options->sm,
                *letter == 'a' || *letter == 'f', letter);
    text_format(next_option(ret_list), size, "-O%u", options->optimization);
    if (options->max_registers)
        text_format(next_option(ret_list), size, "-maxrregcount=%u", options->max_registers);
    if (options->debug_info)
        text_format(next_option(ret_list), size, "-g");
    if (options->line_info)
        text_format(next_option(ret_list), size, "-lineinfo");
}

static char *log_of(jit_handle handle)
{
    size_t size = 0;
    char *log;

    if (jit.get_log_size(handle, &size) != SUCCESS || !size || !(log = calloc(1, size + 1)))
        return NULL;
    if (jit.get_log(handle, log) == SUCCESS)
        return log;
    free(log);
    return NULL;
}

static int take_code(jit_handle handle, void **ret_code, size_t *ret_size)
{
    _cleanup_free_ void *code = NULL;
    size_t size = 0;

    if (jit.get_cubin_size(handle, &size) != SUCCESS || !size)
        return -EINVAL;
    code = malloc(size);
    if (!code)
        return -ENOMEM;
    if (jit.get_cubin(handle, code) != SUCCESS)
        return -EINVAL;
    *ret_code = steal_pointer(code);
    *ret_size = size;
    return 0;
}

/* ptxas says "Unsupported .version 9.9; current version is '9.0'". */
static int error_of(const char *log)
{
    return log && strstr(log, "Unsupported .version") ? -EPROTONOSUPPORT : -EINVAL;
}

/* The process compiles one PTX source and exits, so it frees nothing. */
int jit_link_compile(const char *ptx, const struct jit_link_options *options, void **ret_code,
                     size_t *ret_size, char **ret_log)
{
    struct option_list list;
    jit_handle handle = NULL;

    *ret_code = NULL;
    *ret_log = NULL;
    list_options(ptx, options, &list);
    if (jit.create(&handle, list.count, list.options) != SUCCESS)
        return -EINVAL;
    if (jit.add_data(handle, INPUT_PTX, ptx, strlen(ptx) + 1, "image") == SUCCESS &&
        jit.complete(handle) == SUCCESS)
        return take_code(handle, ret_code, ret_size);
    *ret_log = log_of(handle);
    return error_of(*ret_log);
}
