/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines such as "7f01a000-7f01b000 rw-p 00000000 fe:01 1234   /usr/lib/x.so". */
#include "page_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fd.h"

/* A line ends with a path, which may have 4096 bytes. */
struct reader {
    int fd;
    size_t used, next;
    char text[8192];
};

static bool refill(struct reader *reader)
{
    ssize_t bytes;

    memmove(reader->text, reader->text + reader->next, reader->used - reader->next);
    reader->used -= reader->next;
    reader->next = 0;
    do
        bytes =
            read(reader->fd, reader->text + reader->used, sizeof(reader->text) - 1 - reader->used);
    while (bytes < 0 && errno == EINTR);
    if (bytes <= 0)
        return false;
    reader->used += (size_t)bytes;
    return true;
}

/* NULL at the end. Valid until the next call. */
static const char *read_line(struct reader *reader)
{
    char *end;

    while (!(end = memchr(reader->text + reader->next, '\n', reader->used - reader->next)))
        if (!refill(reader))
            return NULL;
    char *line = reader->text + reader->next;
    *end = '\0';
    reader->next = (size_t)(end + 1 - reader->text);
    return line;
}

/* ---- one line ---- */

static bool read_number(const char **text, int base, char behind, uint64_t *ret_number)
{
    char *end;

    *ret_number = strtoull(*text, &end, base);
    if (end == *text || *end != behind)
        return false;
    *text = end + 1;
    return true;
}

static int protection_of(const char *letters)
{
    return (letters[0] == 'r' ? PROT_READ : 0) | (letters[1] == 'w' ? PROT_WRITE : 0) |
           (letters[2] == 'x' ? PROT_EXEC : 0);
}

/* The heap, and memory that the program has named itself, are ordinary memory. */
static bool is_special(const char *name)
{
    return name[0] == '[' && strcmp(name, "[heap]") != 0 && strncmp(name, "[anon", 5) != 0;
}

bool page_map_parse(const char *line, struct page_area *ret_area)
{
    struct page_area area = {0};
    uint64_t end, major, minor;

    if (!read_number(&line, 16, '-', &area.start) || !read_number(&line, 16, ' ', &end) ||
        strlen(line) < 5)
        return false;
    area.size = end - area.start;
    area.protection = protection_of(line);
    area.shared = line[3] == 's';
    line += 5;
    if (!read_number(&line, 16, ' ', &area.offset) || !read_number(&line, 16, ':', &major) ||
        !read_number(&line, 16, ' ', &minor) || !read_number(&line, 10, ' ', &area.inode))
        return false;
    area.device = makedev((unsigned)major, (unsigned)minor);
    area.special = is_special(line + strspn(line, " "));
    *ret_area = area;
    return true;
}

/* ---- all of them ---- */

static void cut_area(struct page_area *area, uint64_t start, uint64_t end)
{
    if (area->start < start) {
        area->offset += start - area->start;
        area->size -= start - area->start;
        area->start = start;
    }
    if (area->size > end - area->start)
        area->size = end - area->start;
}

static int gather(struct reader *reader, uint64_t start, uint64_t end, struct page_area *areas,
                  unsigned capacity, unsigned *ret_count)
{
    const char *line;
    unsigned count = 0;

    while ((line = read_line(reader))) {
        struct page_area area;

        if (!page_map_parse(line, &area))
            return -EPROTO;
        if (area.start >= end)
            break;
        if (area.start + area.size <= start)
            continue;
        if (count == capacity)
            return -E2BIG;
        cut_area(&area, start, end);
        areas[count++] = area;
    }
    *ret_count = count;
    return 0;
}

static int reader_open(struct reader *reader, const char *path)
{
    *reader = (struct reader){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    return reader->fd < 0 ? -errno : 0;
}

int page_map_read(uint64_t start, uint64_t end, struct page_area *areas, unsigned capacity,
                  unsigned *ret_count)
{
    struct reader reader;
    int r = reader_open(&reader, "/proc/self/maps");

    if (r == 0)
        r = gather(&reader, start, end, areas, capacity, ret_count);
    fd_close(&reader.fd);
    return r;
}

/* Behind address, protection, offset, device and inode. */
static const char *name_of(const char *line)
{
    for (int field = 0; field < 5; field++) {
        line += strcspn(line, " ");
        line += strspn(line, " ");
    }
    return line;
}

/* Its line is valid until the next one is read; NULL where there is none. */
static const char *find_line(struct reader *reader, uint64_t address, struct page_area *ret_area)
{
    const char *line;

    while ((line = read_line(reader)) && page_map_parse(line, ret_area))
        if (address - ret_area->start < ret_area->size)
            return line;
    return NULL;
}

int page_map_find(uint64_t address, struct page_area *ret_area)
{
    struct reader reader;
    struct page_area area;
    int r = reader_open(&reader, "/proc/self/maps");

    if (r == 0)
        r = find_line(&reader, address, &area) ? 0 : -ENOENT;
    fd_close(&reader.fd);
    if (r == 0)
        *ret_area = area;
    return r;
}

static int find_name(struct reader *reader, uint64_t address, char *ret_name, size_t size)
{
    struct page_area area;
    const char *line = find_line(reader, address, &area), *name = line ? name_of(line) : "";

    if (name[0] != '/')
        return -ENOENT;
    if (strlen(name) >= size)
        return -ENAMETOOLONG;
    strcpy(ret_name, name);
    return 0;
}

int page_map_name(uint64_t address, char *ret_name, size_t size)
{
    struct reader reader;
    int r = reader_open(&reader, "/proc/self/maps");

    if (r == 0)
        r = find_name(&reader, address, ret_name, size);
    fd_close(&reader.fd);
    return r;
}

bool page_map_fills(const struct page_area *areas, unsigned count, uint64_t start, uint64_t end)
{
    for (unsigned i = 0; i < count; i++) {
        if (areas[i].start != start)
            return false;
        start += areas[i].size;
    }
    return start == end;
}

unsigned page_map_threads(void)
{
    struct reader reader;
    const char *line;
    unsigned threads = 0;

    if (reader_open(&reader, "/proc/self/status") == 0)
        while (!threads && (line = read_line(&reader)))
            if (strncmp(line, "Threads:", 8) == 0)
                threads = (unsigned)strtoul(line + 8, NULL, 10);
    fd_close(&reader.fd);
    return threads;
}
