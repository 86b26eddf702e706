/* SPDX-License-Identifier: Apache-2.0 */
/* See client_program.h. */
#include "client_program.h"

#include <string.h>

static bool is_same_file(const struct client_file *one, const struct client_file *other)
{
    return one->device == other->device && one->inode == other->inode &&
           one->born_s == other->born_s && one->born_ns == other->born_ns;
}

/* A file system that belongs to one user may hide attributes from the daemon, but not the path. */
static bool is_same_executable(const struct client_program *one, const struct client_program *other)
{
    return is_same_file(&one->executable, &other->executable) &&
           (one->executable.inode || !strcmp(one->path, other->path));
}

bool client_program_is_same(const struct client_program *one, const struct client_program *other)
{
    return one->uid == other->uid && one->container == other->container &&
           is_same_executable(one, other) && is_same_file(&one->folder, &other->folder) &&
           !strcmp(one->script, other->script);
}
