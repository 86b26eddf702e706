/* SPDX-License-Identifier: Apache-2.0 */
/* Where Funnel's own library for monitors is found by NVML's name, which the environment sees to.
 */
#include "nvml.h"

#include <dlfcn.h>
#include <stddef.h>

#include "unit.h"

static void test_own_library(void **state)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    struct nvml nvml;

    assert_non_null(library);
    assert_non_null(dlsym(library, NVML_FUNNEL_SIGN));
    assert_false(nvml_open("/nowhere/libcuda.so.1", &nvml));
    assert_null(nvml.library);
    nvml_close(&nvml);
    dlclose(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own_library)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
