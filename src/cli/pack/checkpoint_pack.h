/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the two forms of a checkpoint's contents: the file "memory", and chunks that it shares
 * with other checkpoints (chunk_store.h). The manifest says which form counts. It is replaced when
 * the other form is on its disk, so a kill at any point leaves a whole checkpoint.
 *
 * The functions return 0, or 1 after an error message.
 */
#pragma once

#include "checkpoint_directory.h"
#include "chunk_store.h"

/* Puts the contents into the store. Refuses a checkpoint whose file a process has open, since a
 * program, or CRIU, needs it by its name. */
int checkpoint_pack(const char *path, struct chunk_store *store);

/* Whether the store is on the file system of a checkpoint that is to be made. */
int checkpoint_pack_check(const struct checkpoint_directory *checkpoint,
                          const struct chunk_store *store);

/* As checkpoint_pack(), of a checkpoint that has no name yet. An error leaves it to be removed. */
int checkpoint_pack_new(const struct checkpoint_directory *checkpoint, struct chunk_store *store,
                        struct checkpoint_manifest *manifest);

/* Makes the file "memory" from the chunks again, which stay. */
int checkpoint_unpack(const char *path, const struct checkpoint_manifest *manifest);

/* Opens the store, or deletes its chunks that no checkpoint has. */
int pack_open_store(struct chunk_store *store, const char *path, bool compress);
int pack_clean_store(const char *path);
