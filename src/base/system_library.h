/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding NVIDIA's library from a library of Funnel's that has the same name. The linker would
 * return Funnel's own, so NVIDIA's is searched by absolute path.
 */
#pragma once

#include <stdbool.h>

struct system_library {
    const char *name;                 /* "libcuda.so.1" */
    const char *variable;             /* the environment variable that may name its path */
    const void *own;                  /* an address in the library of Funnel's that asks */
    bool (*is_funnel)(void *library); /* whether it is another copy of the library that asks */
    int flags;                        /* of dlopen(), besides RTLD_NOW and RTLD_LOCAL */
};

/* Opens it: from the path that the variable names, else from LD_LIBRARY_PATH, else
 * from the folders of distributions and containers. NULL when there is none. Setuid programs follow
 * no variable. */
void *system_library_open(const struct system_library *wanted);
