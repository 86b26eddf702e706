/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor counts only if device and inode are those of the memory map: names and numbers of
 * descriptors may mean something else by now.
 */
#include "shared_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"

bool shared_file_is(const struct page_area *areas, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (!areas[i].shared || !(areas[i].protection & PROT_WRITE) || !areas[i].inode ||
            areas[i].device != areas[0].device || areas[i].inode != areas[0].inode ||
            areas[i].offset - areas[0].offset != areas[i].start - areas[0].start)
            return false;
    }
    return count > 0;
}

static bool is_of(const struct page_area *area, const struct stat *file)
{
    return S_ISREG(file->st_mode) && file->st_dev == area->device && file->st_ino == area->inode;
}

static bool leads_to(int fd, const struct page_area *area)
{
    struct stat file;

    return fstat(fd, &file) == 0 && is_of(area, &file);
}

static bool is_for_writing(int fd)
{
    return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/* Another thread may close the number and open something else: the copy is looked at again. */
static int copy_descriptor(int number, const struct page_area *area)
{
    _cleanup_fd_ int fd = -1;

    if (!leads_to(number, area))
        return -1;
    fd = fcntl(number, F_DUPFD_CLOEXEC, 0);
    return fd >= 0 && leads_to(fd, area) && is_for_writing(fd) ? fd_steal(&fd) : -1;
}

/* -1 where the process has none. */
static int find_descriptor(const struct page_area *area)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    int fd = -1;

    while (folder && fd < 0 && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            fd = copy_descriptor(atoi(entry->d_name), area);
    if (folder)
        closedir(folder);
    return fd;
}

/* To look at a name that is a device's or a pipe's has no effect with O_PATH. */
static int open_name(const struct page_area *area)
{
    char name[PATH_MAX], again[64];
    _cleanup_fd_ int found = -1;
    int r = page_map_name(area->start, name, sizeof(name));

    if (r < 0)
        return r;
    found = open(name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (found < 0 || !leads_to(found, area))
        return -ENOENT;
    snprintf(again, sizeof(again), "/proc/self/fd/%d", found);
    int fd = open(again, O_RDWR | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* The kernel lets privileged processes (CAP_CHECKPOINT_RESTORE) open what is mapped, also where it
 * never had a name. */
static int open_mapped(const struct page_area *area)
{
    struct page_area whole;
    char name[96];
    int r = page_map_find(area->start, &whole);

    if (r < 0)
        return r;
    snprintf(name, sizeof(name), "/proc/self/map_files/%llx-%llx", (unsigned long long)whole.start,
             (unsigned long long)(whole.start + whole.size));
    _cleanup_fd_ int fd = open(name, O_RDWR | O_CLOEXEC);
    return fd >= 0 && leads_to(fd, area) ? fd_steal(&fd) : -ENOENT;
}

int shared_file_open(const struct page_area *area)
{
    int fd = find_descriptor(area);

    if (fd < 0)
        fd = open_name(area);
    return fd < 0 ? open_mapped(area) : fd;
}
