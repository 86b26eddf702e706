/* SPDX-License-Identifier: Apache-2.0 */
/* See feature.h. */
#include "feature.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS ", "
#define IS_READ (UINT32_C(1) << 31)

_Static_assert(FEATURE_COUNT <= 31, "a bit for each feature, and IS_READ");

#define FEATURE_TEXT(name, text) text,
static const char *const names[] = {FEATURES(FEATURE_TEXT)};
#undef FEATURE_TEXT

/* The name at the front of the list `*rest`, which then begins behind it; NULL at its end. */
static const char *take_name(const char **rest, size_t *ret_length)
{
    const char *name = *rest + strspn(*rest, SEPARATORS);

    *ret_length = strcspn(name, SEPARATORS);
    *rest = name + *ret_length;
    return *ret_length ? name : NULL;
}

static bool is_name_of(enum feature feature, const char *name, size_t length)
{
    return strlen(names[feature]) == length && !memcmp(names[feature], name, length);
}

static const char *off_list(void)
{
    const char *list = getenv("FUNNEL_OFF");

    return list ? list : "";
}

bool feature_is_off(enum feature feature)
{
    const char *rest = off_list(), *name;
    size_t length;

    while ((name = take_name(&rest, &length)))
        if (is_name_of(feature, name, length))
            return true;
    return false;
}

static uint32_t read_all(void)
{
    uint32_t off = IS_READ;

    for (enum feature feature = 0; feature < FEATURE_COUNT; feature++)
        off |= (uint32_t)feature_is_off(feature) << feature;
    return off;
}

bool feature_is_off_once(enum feature feature)
{
    static atomic_uint_fast32_t known;
    uint32_t off = (uint32_t)atomic_load_explicit(&known, memory_order_relaxed);

    if (!off) {
        off = read_all();
        atomic_store_explicit(&known, off, memory_order_relaxed);
    }
    return off >> feature & 1;
}

static bool is_known(const char *name, size_t length)
{
    for (enum feature feature = 0; feature < FEATURE_COUNT; feature++)
        if (is_name_of(feature, name, length))
            return true;
    return false;
}

bool feature_complaint(char *ret_message, size_t size)
{
    const char *rest = off_list(), *name;
    char unknown[256] = "";
    size_t length;

    while ((name = take_name(&rest, &length))) {
        size_t used = strlen(unknown);
        if (!is_known(name, length))
            snprintf(unknown + used, sizeof(unknown) - used, "%s%.*s", used ? ", " : "",
                     (int)length, name);
    }
    snprintf(ret_message, size,
             "FUNNEL_OFF has names that are not known, and are ignored: %s; docs/environment.md "
             "lists the names",
             unknown);
    return *unknown;
}
