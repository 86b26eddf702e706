/* SPDX-License-Identifier: Apache-2.0 */
/* See client_program.h. */
#include "client_program.h"

#include <string.h>

#include "hash.h"
#include "text.h"

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

static void copy_file(struct client_file *copy, const struct client_file *file)
{
    copy->device = file->device;
    copy->inode = file->inode;
    copy->born_s = file->born_s;
    copy->born_ns = file->born_ns;
}

/* Of what makes two programs the same, with zeros in all the rest of the structure. */
uint64_t client_program_hash(const struct client_program *program)
{
    struct client_program same;

    memset(&same, 0, sizeof(same));
    same.uid = program->uid;
    same.container = program->container;
    copy_file(&same.executable, &program->executable);
    copy_file(&same.folder, &program->folder);
    if (!program->executable.inode)
        text_copy(same.path, sizeof(same.path), program->path);
    text_copy(same.script, sizeof(same.script), program->script);
    return hash_bytes(&same, sizeof(same)) | 1;
}
