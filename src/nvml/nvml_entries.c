/* SPDX-License-Identifier: Apache-2.0 */
/* See nvml_entries.h. */
#include "nvml_entries.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "nvml_abi.h"
#include "nvml_facts.h"
#include "nvml_soft.h"
#include "nvml_soft_devices.h"
#include "system_library.h"

static const char *const names[] = {
#define NVML_PASS(name) #name,
#define NVML_OWN(name) #name,
#include "nvml_names.def"
#undef NVML_PASS
#undef NVML_OWN
};

/* The trampolines read both. */
void *nvml_entries[NVML_NAMES];
atomic_int nvml_loaded;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_soft;

/* ---- fork ---- */

/* A child must not inherit a lock that another thread has. */
static void before_fork(void)
{
    pthread_mutex_lock(&load_lock);
    soft_before_fork();
    facts_before_fork();
}

static void after_fork(void)
{
    facts_after_fork();
    soft_after_fork();
    pthread_mutex_unlock(&load_lock);
}

/* ---- loading ---- */

static int answer_missing(void)
{
    return NVML_ERROR_FUNCTION_NOT_FOUND;
}

static int answer_unsupported(void)
{
    return NVML_ERROR_NOT_SUPPORTED;
}

void nvml_entry_set(enum nvml_index index, void *function)
{
    nvml_entries[index] = function;
}

static bool is_funnel(void *library)
{
    return dlsym(library, NVML_FUNNEL_SIGN) != NULL;
}

/* Its calls of functions of its own must not come to this library, which programs preload. */
static void *open_real(void)
{
    const struct system_library real = {"libnvidia-ml.so.1", "FUNNEL_NVML", (const void *)nvml_base,
                                        is_funnel, RTLD_DEEPBIND};
    const char *named = secure_getenv("FUNNEL_NVML");

    return named && !strcmp(named, "soft") ? NULL : system_library_open(&real);
}

static void fill_from(void *library)
{
    for (unsigned i = 0; i < NVML_NAMES; i++) {
        void *function = library ? dlsym(library, names[i]) : (void *)answer_unsupported;

        nvml_entries[i] = function ? function : (void *)answer_missing;
    }
}

/* Called by trampolines, too. */
void nvml_load(void);

/* Partner of the acquiring loads in nvml_base() and the trampolines. */
void nvml_load(void)
{
    pthread_mutex_lock(&load_lock);
    if (!atomic_load_explicit(&nvml_loaded, memory_order_relaxed)) {
        void *library = open_real();

        fill_from(library);
        is_soft = !library;
        if (is_soft)
            soft_fill();
        pthread_atfork(before_fork, after_fork, after_fork);
        atomic_store_explicit(&nvml_loaded, 1, memory_order_release);
    }
    pthread_mutex_unlock(&load_lock);
}

void *nvml_base(enum nvml_index index)
{
    if (!atomic_load_explicit(&nvml_loaded, memory_order_acquire))
        nvml_load();
    return nvml_entries[index];
}

bool nvml_is_soft(void)
{
    nvml_base(0);
    return is_soft;
}
