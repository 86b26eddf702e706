/* SPDX-License-Identifier: Apache-2.0 */
/* See group_memory.h. */
#include "group_memory.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "client_limits.h"
#include "control_group.h"
#include "fd.h"
#include "joint_ledger.h"
#include "text.h"

#define FILE_MAX (16u << 10)

/* Beside hierarchies of version 1, that of version 2 is a directory below. */
static const char *const hierarchies[] = {"", "/unified"};

bool group_memory_is_there(const char *root)
{
    char path[PATH_MAX];

    for (unsigned i = 0; i < 2; i++)
        if (text_format(path, sizeof(path), "%s%s/dmem.capacity", root, hierarchies[i]) &&
            !access(path, F_OK))
            return true;
    return false;
}

/* A region's name holds the device's address as Linux writes it, 0000:03:00.0, or its UUID. */
static bool is_of_device(const char *region, const struct server_device *device)
{
    char uuid[GPU_UUID_TEXT], address[sizeof(device->pci_bus_id) + 1] = "";

    memcpy(address, device->pci_bus_id, sizeof(device->pci_bus_id));
    device_uuid_text(device, uuid);
    return (*address && strcasestr(region, address)) || strcasestr(region, uuid);
}

/* What has been found of one kind of limits. */
struct found {
    const struct server_ready *ready;
    uint64_t least;                     /* stands for a 0 in a file, since a limit of 0 is none */
    uint64_t bytes[SERVER_MAX_DEVICES]; /* the tightest so far; 0 = none */
    uint64_t key;                       /* of the group that has it */
};

/* "max" is no number, and no limit. Whether it is tighter than what was there. */
static bool tighten_by_line(const char *region, const char *value, struct found *found)
{
    uint64_t bytes;
    bool any = false;

    if (text_to_u64(value, &bytes))
        return false;
    bytes = bytes ? bytes : found->least;
    for (unsigned i = 0; bytes && i < found->ready->device_count; i++) {
        if (!is_of_device(region, &found->ready->devices[i]) ||
            (found->bytes[i] && bytes >= found->bytes[i]))
            continue;
        found->bytes[i] = bytes;
        any = true;
    }
    return any;
}

static bool tighten_by_file(const char *path, struct found *found)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[FILE_MAX], *rest = NULL;
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    bool any = false;

    text[size > 0 ? size : 0] = '\0';
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *value = strrchr(line, ' ');

        if (!value)
            continue;
        *value++ = '\0';
        any |= tighten_by_line(line, value, found);
    }
    return any;
}

/* The group itself, then those above it. */
static void tighten_by_groups(const char *root, const char *hierarchy, char *group, uint32_t uid,
                              struct found *most, struct found *soft)
{
    char path[2 * PATH_MAX];

    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        *end = '\0';
        if (text_format(path, sizeof(path), "%s%s%s/dmem.max", root, hierarchy, group) &&
            tighten_by_file(path, most))
            most->key = joint_key(uid, path);
        if (text_format(path, sizeof(path), "%s%s%s/dmem.min", root, hierarchy, group))
            tighten_by_file(path, soft);
    }
}

static void tighten(uint64_t limits[SERVER_MAX_DEVICES], const struct found *found)
{
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        if (found->bytes[i] && (!limits[i] || found->bytes[i] < limits[i]))
            limits[i] = found->bytes[i];
}

void group_memory_tighten(const char *root, const char *groups, uint32_t uid,
                          const struct server_ready *ready, struct server_limits *limits)
{
    /* With a dmem.max of 0 nothing may be held; a dmem.min of 0 is as if it were not set. */
    struct found most = {.ready = ready, .least = 1}, soft = {.ready = ready};
    struct joint_limit *joint = &limits->joint[JOINT_CONTROL_GROUP];

    for (unsigned i = 0; i < 2; i++) {
        char group[PATH_MAX];

        if (control_groups_path(groups, "", group, sizeof(group)))
            tighten_by_groups(root, hierarchies[i], group, uid, &most, &soft);
    }
    tighten(limits->memory_limit, &most);
    tighten(limits->memory_soft, &soft);
    joint->key = most.key;
    memcpy(joint->memory, most.bytes, sizeof(joint->memory));
}
