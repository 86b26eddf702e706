/* SPDX-License-Identifier: Apache-2.0 */
/* See user_name.h. */
#include "user_name.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>

#include "text.h"

#define NAMES 256u /* users whose numbers end alike share a place */

static struct {
    bool known;
    uid_t uid;
    char name[48];
} names[NAMES];

const char *user_name(uid_t uid)
{
    unsigned place = uid % NAMES;

    if (names[place].known && names[place].uid == uid)
        return names[place].name;
    const struct passwd *entry = getpwuid(uid);

    names[place].known = true;
    names[place].uid = uid;
    if (entry)
        text_copy(names[place].name, sizeof(names[place].name), entry->pw_name);
    else
        text_format(names[place].name, sizeof(names[place].name), "%u", (unsigned)uid);
    return names[place].name;
}

int user_number(const char *name, uid_t *ret_uid)
{
    const struct passwd *entry;
    uint64_t number;

    if (!text_to_u64(name, &number) && number < UINT32_MAX) {
        *ret_uid = (uid_t)number;
        return 0;
    }
    entry = getpwnam(name);
    if (!entry)
        return -ENOENT;
    *ret_uid = entry->pw_uid;
    return 0;
}
