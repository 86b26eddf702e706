/* SPDX-License-Identifier: Apache-2.0 */
/* Where a search by NVML's name finds Funnel's own library for monitors: the linker takes one that
 * is loaded. The argument is its path. */
#include "nvml.h"

#include <dlfcn.h>
#include <stddef.h>

#include "unit.h"

static const char *own_library;

static void test_own_library(void **state)
{
    void *library = dlopen(own_library, RTLD_NOW | RTLD_LOCAL);
    struct nvml nvml;

    assert_non_null(library);
    assert_non_null(dlsym(library, NVML_FUNNEL_SIGN));
    assert_false(nvml_open("/nowhere/libcuda.so.1", &nvml));
    assert_null(nvml.library);
    nvml_close(&nvml);
    dlclose(library);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own_library)};

    own_library = argv[argc - 1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
