/* SPDX-License-Identifier: Apache-2.0 */
/* See client_class.h. */
#include "client_class.h"

#include <string.h>

static const char *const names[] = {
    [CLASS_UNSET] = "normal",
    [CLASS_CRITICAL] = "critical",
    [CLASS_NORMAL] = "normal",
    [CLASS_BATCH] = "batch",
};

bool client_class_parse(const char *text, uint32_t *ret_class)
{
    for (uint32_t class = CLASS_CRITICAL; class <= CLASS_BATCH; class ++)
        if (!strcmp(text, names[class])) {
            *ret_class = class;
            return true;
        }
    return false;
}

const char *client_class_name(uint32_t class)
{
    return names[class <= CLASS_BATCH ? class : CLASS_NORMAL];
}

uint32_t client_class_bound(uint32_t asked, uint32_t set)
{
    bool is_asked = asked >= CLASS_CRITICAL && asked <= CLASS_BATCH;

    if (set == CLASS_UNSET)
        return is_asked ? asked : CLASS_NORMAL;
    return is_asked && asked > set ? asked : set;
}
