/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs and libraries of CUDA 13.1 to 13.5 ask for functions that a driver of 13.0 does not
 * have. They get the answers of such a driver: no function, and never an error that says less or a
 * function that is another.
 */
#include "newer_names.h"

#include <dlfcn.h>

#include "check.h"

struct newer {
    const char *exported;
    const char *name; /* for cuGetProcAddress */
    int version;      /* that it comes with */
};

#define NEW_NAME(name, version) {#name, #name, version},
#define NEW_FORM(exported, name, version) {#exported, #name, version},

static const struct newer names[] = {NEWER_NAMES(NEW_NAME)};
static const struct newer forms[] = {NEWER_FORMS(NEW_FORM)};

static int driver_version;

/* A program that asks by its own version learns that the driver is too old, and its pointer stays.
 */
static void refused_in_its_own_version(const struct newer *newer)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    void *function = &driver_version;

    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGetProcAddress_v2(newer->name, &function, newer->version, 0, &status));
    IS_TRUE(function == &driver_version);
    IS_TRUE(dlsym(RTLD_DEFAULT, newer->exported) == NULL);
}

static void unknown_name(const struct newer *newer)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    void *function = &driver_version;

    EXPECT(CUDA_SUCCESS, cuGetProcAddress_v2(newer->name, &function, 13000, 0, &status));
    IS_TRUE(function == NULL && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    refused_in_its_own_version(newer);
}

/* In the version of 13.0 it is the form that 13.0 has. */
static void older_form(const struct newer *newer)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void *function = NULL;

    EXPECT(CUDA_SUCCESS, cuGetProcAddress_v2(newer->name, &function, 13000, 0, &status));
    IS_TRUE(function != NULL && status == CU_GET_PROC_ADDRESS_SUCCESS);
    refused_in_its_own_version(newer);
}

static void new_names(void)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (driver_version < names[i].version)
            unknown_name(&names[i]);
}

static void new_forms_of_old_names(void)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
        if (driver_version < forms[i].version)
            older_form(&forms[i]);
}

int main(void)
{
    check_init();
    MUST(cuDriverGetVersion(&driver_version));
    RUN(new_names);
    RUN(new_forms_of_old_names);
    return check_close();
}
