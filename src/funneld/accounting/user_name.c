/* SPDX-License-Identifier: Apache-2.0 */
/* See user_name.h. */
#include "user_name.h"

#include <pwd.h>
#include <stdbool.h>

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
