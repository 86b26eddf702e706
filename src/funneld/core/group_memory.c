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

/* "max" is no number, and no limit. */
static void tighten_by_line(const char *region, const char *value, const struct server_ready *ready,
                            uint64_t least, uint64_t limits[SERVER_MAX_DEVICES])
{
    uint64_t bytes;

    if (text_to_u64(value, &bytes))
        return;
    bytes = bytes ? bytes : least;
    for (unsigned i = 0; bytes && i < ready->device_count; i++)
        if (is_of_device(region, &ready->devices[i]) && (!limits[i] || bytes < limits[i]))
            limits[i] = bytes;
}

/* `least` stands for a 0 in the file, since a limit of 0 is none. */
static void tighten_by_file(const char *path, const struct server_ready *ready, uint64_t least,
                            uint64_t limits[SERVER_MAX_DEVICES])
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[FILE_MAX], *rest = NULL;
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

    text[size > 0 ? size : 0] = '\0';
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *value = strrchr(line, ' ');

        if (!value)
            continue;
        *value++ = '\0';
        tighten_by_line(line, value, ready, least, limits);
    }
}

/* The group itself, then those above it. */
static void tighten_by_groups(const char *root, const char *hierarchy, char *group,
                              const struct server_ready *ready, struct server_limits *limits)
{
    char path[2 * PATH_MAX];

    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        *end = '\0';
        /* With a dmem.max of 0 nothing may be held; a dmem.min of 0 is as if it were not set. */
        if (text_format(path, sizeof(path), "%s%s%s/dmem.max", root, hierarchy, group))
            tighten_by_file(path, ready, 1, limits->memory_limit);
        if (text_format(path, sizeof(path), "%s%s%s/dmem.min", root, hierarchy, group))
            tighten_by_file(path, ready, 0, limits->memory_soft);
    }
}

void group_memory_tighten(const char *root, const char *groups, const struct server_ready *ready,
                          struct server_limits *limits)
{
    for (unsigned i = 0; i < 2; i++) {
        char group[PATH_MAX];

        if (control_groups_path(groups, "", group, sizeof(group)))
            tighten_by_groups(root, hierarchies[i], group, ready, limits);
    }
}
