/* SPDX-License-Identifier: Apache-2.0 */
/* See inherited.h. A line is "KIND FD SIZE ABOUT", and its data follow. */
#include "inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fd.h"
#include "text.h"

#define VARIABLE "FUNNEL_RELOAD"
#define FIRST_LINE "funnel reload " INHERITED_FORMAT " %d\n"
#define DATA_MAX (64u << 10) /* far more than a hello */

static struct list all = {&all, &all};
static bool exists;

void inherited_free(struct inherited *one)
{
    list_remove(&one->link);
    free(one->about);
    free(one->data);
    free(one);
}

int inherited_add(struct list *list, const char *kind, int fd, const char *about, const void *data,
                  size_t size)
{
    struct inherited *one = calloc(1, sizeof(*one));

    if (!one)
        return -ENOMEM;
    list_append(list, &one->link);
    one->fd = fd;
    one->about = strdup(about);
    one->data = malloc(size + 1);
    if (!one->about || !one->data || !text_copy(one->kind, sizeof(one->kind), kind)) {
        inherited_free(one);
        return -ENOMEM;
    }
    one->size = size;
    if (size)
        memcpy(one->data, data, size);
    return 0;
}

/* ---- leaving ---- */

static int set_inheritable(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFD);

    if (flags < 0 || fcntl(fd, F_SETFD, on ? flags & ~FD_CLOEXEC : flags | FD_CLOEXEC))
        return -errno;
    return 0;
}

static bool write_list(FILE *file, const struct list *list)
{
    fprintf(file, FIRST_LINE, (int)getpid());
    list_for_each (struct inherited, one, list, link) {
        fprintf(file, "%s %d %zu %s\n", one->kind, one->fd, one->size, one->about);
        fwrite(one->data, 1, one->size, file);
    }
    return !fflush(file) && !ferror(file);
}

static int name_file(int fd)
{
    char number[16];
    int error = set_inheritable(fd, true);

    text_format(number, sizeof(number), "%d", fd);
    if (!error && setenv(VARIABLE, number, 1))
        error = -errno;
    return error;
}

/* The file itself stays open until execve(), or until the daemon ends. */
int inherited_leave(const struct list *list)
{
    int fd = memfd_create("funnel-reload", MFD_CLOEXEC), error = fd < 0 ? -errno : 0;
    FILE *file = fd < 0 ? NULL : fdopen(dup(fd), "w");

    if (!error && (!file || !write_list(file, list)))
        error = -ENOMEM;
    if (file)
        fclose(file);
    list_for_each (struct inherited, one, list, link)
        if (!error)
            error = set_inheritable(one->fd, true);
    if (!error)
        error = name_file(fd);
    if (error) {
        fd_close(&fd);
        inherited_keep(list);
    }
    return error;
}

void inherited_keep(const struct list *list)
{
    const char *number = getenv(VARIABLE);
    int fd = number ? atoi(number) : -1;

    fd_close(&fd);
    unsetenv(VARIABLE);
    list_for_each (struct inherited, one, list, link)
        set_inheritable(one->fd, false);
}

/* ---- inheriting ---- */

/* Of a line that this program itself, or another of this format, has written. */
static int read_one(FILE *file, const char *line)
{
    char kind[16];
    int fd, at = 0;
    size_t size;
    static unsigned char data[DATA_MAX];

    if (sscanf(line, "%15s %d %zu %n", kind, &fd, &size, &at) != 3 || !at || size > sizeof(data) ||
        fread(data, 1, size, file) != size || set_inheritable(fd, false))
        return -EBADMSG;
    return inherited_add(&all, kind, fd, line + at, data, size);
}

static int read_list(FILE *file)
{
    char *line = NULL;
    size_t capacity = 0;
    int pid = 0, error = 0;
    ssize_t length = getline(&line, &capacity, file);

    if (length < 0 || sscanf(line, FIRST_LINE, &pid) != 1 || pid != (int)getpid())
        error = -EBADMSG;
    while (!error && (length = getline(&line, &capacity, file)) > 0) {
        line[length - 1] = '\0';
        error = read_one(file, line);
    }
    free(line);
    return error;
}

int inherited_read(void)
{
    const char *number = getenv(VARIABLE);
    int fd = number ? atoi(number) : -1;
    FILE *file;
    int error;

    unsetenv(VARIABLE);
    if (fd < 0)
        return 0;
    file = lseek(fd, 0, SEEK_SET) ? NULL : fdopen(fd, "r");
    if (!file)
        return -errno;
    error = read_list(file);
    fclose(file);
    exists = !error;
    return error;
}

bool inherited_exists(void)
{
    return exists;
}

static struct inherited *find_inherited(const char *kind, const char *about)
{
    list_for_each (struct inherited, one, &all, link)
        if (!strcmp(one->kind, kind) && (!about || !strcmp(one->about, about)))
            return one;
    return NULL;
}

int inherited_take(const char *kind, const char *about)
{
    struct inherited *one = find_inherited(kind, about);
    int fd = one ? one->fd : -1;

    if (one)
        inherited_free(one);
    return fd;
}

struct inherited *inherited_next(const char *kind)
{
    struct inherited *one = find_inherited(kind, NULL);

    if (one) {
        list_remove(&one->link);
        list_init(&one->link);
    }
    return one;
}
