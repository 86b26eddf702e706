/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_names.h. */
#include "cupti_names.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 1024u

struct name_list {
    const char *names[NAMES_MAX]; /* by number */
    uint32_t count;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct name_list driver, runtime;
static uint16_t by_name[NAMES_MAX]; /* numbers of driver calls, in the order of their names */

static void split_names(const char *text, unsigned size, struct name_list *list)
{
    const char *end = text + size - 1; /* the literal's own NUL */

    for (; text < end && list->count < NAMES_MAX; text += strlen(text) + 1)
        list->names[list->count++] = text;
}

static int compare_numbers(const void *a, const void *b)
{
    return strcmp(driver.names[*(const uint16_t *)a], driver.names[*(const uint16_t *)b]);
}

static void make_lists(void)
{
    split_names(cupti_driver_names, cupti_driver_names_size, &driver);
    split_names(cupti_runtime_names, cupti_runtime_names_size, &runtime);
    for (uint32_t i = 0; i < driver.count; i++)
        by_name[i] = (uint16_t)i;
    qsort(by_name, driver.count, sizeof(*by_name), compare_numbers);
}

static int compare_name(const void *name, const void *number)
{
    return strcmp(name, driver.names[*(const uint16_t *)number]);
}

uint32_t cupti_driver_cbid(const char *name)
{
    const uint16_t *found;

    pthread_once(&once, make_lists);
    found = bsearch(name, by_name, driver.count, sizeof(*by_name), compare_name);
    return found ? *found : 0;
}

const char *cupti_call_name(bool of_runtime, uint32_t cbid)
{
    const struct name_list *list = of_runtime ? &runtime : &driver;

    pthread_once(&once, make_lists);
    return cbid < list->count && *list->names[cbid] ? list->names[cbid] : NULL;
}
