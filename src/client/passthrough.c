/* SPDX-License-Identifier: Apache-2.0 */
/* See passthrough.h. */
#include "passthrough.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

#include "passthrough_table.h"
#include "system_library.h"

const CUuuid passthrough_signature = {"\xf0\x0e\x1a funnel here"};

/* A second copy of this library would pass calls on to a third, and so on. Each knows the
 * signature, for which no driver has a table. */
static bool is_funnel(void *library)
{
    CUresult (*get_table)(const void **, const CUuuid *) = dlsym(library, "cuGetExportTable");
    const void *table;

    return get_table && get_table(&table, &passthrough_signature) == CUDA_SUCCESS;
}

/* This library logs the errors of calls that it passes on (client_entry.h). */
static void keep_from_logging(void *library)
{
    void (*errors_are_logged)(void);

    *(void **)&errors_are_logged = dlsym(library, "funnelErrorsAreLogged");
    if (errors_are_logged)
        errors_are_logged();
}

int passthrough_open(void)
{
    const struct system_library driver = {"libcuda.so.1", "FUNNEL_DRIVER",
                                          (const void *)passthrough_open, is_funnel, 0};
    void *library = system_library_open(&driver);

    if (!library)
        return -ENOENT;
    keep_from_logging(library);
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
