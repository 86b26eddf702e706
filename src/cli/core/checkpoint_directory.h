/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of a checkpoint while it is made. It has another name until it is whole, so that no
 * reader sees a part of it, also after a kill:
 *
 *     .NAME.XXXXXX/memory, manifest ── fsync, rename ──> NAME/
 */
#pragma once

#include <limits.h>

#include "checkpoint_manifest.h"

struct checkpoint_directory {
    const char *path; /* what it becomes */
    char temporary[PATH_MAX];
    int directory, memory; /* descriptors of it, and of its file "memory" */
    bool in_host_memory;   /* that has no name: the contents will be in chunks */
};

/* Makes it beside its later place, which must be free. The file has a name in it, or is in host
 * memory. *ret_envelope has descriptors of the file, as SUSPEND_CLIENT takes it; the caller closes
 * it. 0, or 1 after an error message. */
int checkpoint_directory_make(struct checkpoint_directory *checkpoint, const char *path,
                              bool in_host_memory, int *ret_envelope);

/* Writes the manifest, which gets the size of the memory, and gives the directory its name. Until
 * then it can be removed. 0, or 1 after an error message. */
int checkpoint_directory_publish(struct checkpoint_directory *checkpoint,
                                 struct checkpoint_manifest *manifest);

/* Removes what has not been published. */
void checkpoint_directory_remove(const struct checkpoint_directory *checkpoint);

/* Removes links to chunks, and their list, from the directory of a checkpoint. */
void checkpoint_chunks_remove(int directory);

/* Closes the descriptors. */
void checkpoint_directory_close(struct checkpoint_directory *checkpoint);
