/* SPDX-License-Identifier: Apache-2.0 */
/* See user_owner.h. The file is read again when it has changed. */
#include "user_owner.h"

#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "text.h"

#define SUBUID_FILE "/etc/subuid"
#define RANGES_MAX (1u << 16)

struct range {
    char owner[40]; /* name or number */
    uint64_t first, count;
};

static struct range *ranges;
static unsigned range_count;
static struct stat read_status; /* of the file that they are from */

static bool is_read(const struct stat *status)
{
    return status->st_ino == read_status.st_ino && status->st_dev == read_status.st_dev &&
           status->st_size == read_status.st_size &&
           status->st_mtim.tv_sec == read_status.st_mtim.tv_sec &&
           status->st_mtim.tv_nsec == read_status.st_mtim.tv_nsec;
}

/* OWNER:FIRST:COUNT */
static bool parse_line(char *line, struct range *ret_range)
{
    char *first = strchr(line, ':');
    char *count = first ? strchr(first + 1, ':') : NULL;

    if (!count)
        return false;
    *first++ = *count++ = '\0';
    count[strcspn(count, "\n")] = '\0';
    return text_copy(ret_range->owner, sizeof(ret_range->owner), line) &&
           !text_to_u64(first, &ret_range->first) && !text_to_u64(count, &ret_range->count);
}

static void add_range(const struct range *range)
{
    bool full = (range_count & (range_count - 1)) == 0;
    struct range *grown =
        full ? reallocarray(ranges, range_count ? 2 * range_count : 1, sizeof(*ranges)) : ranges;

    if (!grown)
        return;
    ranges = grown;
    ranges[range_count++] = *range;
}

static void read_ranges(FILE *file)
{
    struct range range;
    char line[256];

    range_count = 0;
    while (range_count < RANGES_MAX && fgets(line, sizeof(line), file))
        if (parse_line(line, &range))
            add_range(&range);
}

/* Without a file there are no ranges. */
static void refresh(const char *path)
{
    struct stat status = {0};

    if (!stat(path, &status) && is_read(&status))
        return;
    range_count = 0;
    read_status = status;
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    read_ranges(file);
    fclose(file);
}

static uid_t owner_of(const struct range *range, uid_t uid)
{
    const struct passwd *entry;
    uint64_t number;

    if (!text_to_u64(range->owner, &number) && number < UINT32_MAX)
        return (uid_t)number;
    entry = getpwnam(range->owner);
    return entry ? entry->pw_uid : uid;
}

uid_t user_owner_by(const char *path, uid_t uid)
{
    if (uid == 0)
        return 0;
    refresh(path);
    for (unsigned i = 0; i < range_count; i++)
        if (uid >= ranges[i].first && uid - ranges[i].first < ranges[i].count)
            return owner_of(&ranges[i], uid);
    return uid;
}

uid_t user_owner(uid_t uid)
{
    return user_owner_by(SUBUID_FILE, uid);
}
