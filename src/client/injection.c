/* SPDX-License-Identifier: Apache-2.0 */
/* See injection.h. NVIDIA's driver does the same in cuInit(), as CUPTI's samples show. */
#include "injection.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "client_log.h"
#include "driver_tool.h"

/* As dlopen() and dlsym() do, the library stays until the process ends. */
static void load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    int (*initialize)(void);

    if (!library) {
        client_log_to_file(0, "CUDA_INJECTION64_PATH: %s", dlerror());
        return;
    }
    *(void **)&initialize = dlsym(library, "InitializeInjection");
    if (!initialize)
        client_log_to_file(0, "CUDA_INJECTION64_PATH: %s has no InitializeInjection()", path);
    else if (!initialize())
        client_log_to_file(0, "CUDA_INJECTION64_PATH: InitializeInjection() of %s has failed",
                           path);
}

void injection_load(void)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    const char *path;

    if (atomic_flag_test_and_set_explicit(&begun, memory_order_acq_rel))
        return;
    path = driver_tool_path();
    if (path && !driver_tool_is_nvidias(path))
        load(path);
}
