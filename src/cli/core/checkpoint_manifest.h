/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a checkpoint's directory says of itself: lines of NAME=VALUE in the file "manifest". The
 * last is a checksum of those before. docs/design/swapping.md lists them.
 */
#pragma once

#include <stdint.h>

#include "snapshot.h"

#define CHECKPOINT_FORMAT 1u
#define CHECKPOINT_FORMAT_PACKED 2u /* the contents are in chunks */
#define CHECKPOINT_DEVICES_MAX SERVER_MAX_DEVICES

/* What has become of the program. */
enum checkpoint_state { CHECKPOINT_RUNNING, CHECKPOINT_SUSPENDED, CHECKPOINT_DETACHED };

struct checkpoint_device {
    char uuid[GPU_UUID_TEXT], name[64];
};

struct checkpoint_manifest {
    enum checkpoint_state state;
    int32_t pid, id;
    uint64_t started;     /* in clock ticks after the machine did; 0 = not known */
    uint64_t memory_size; /* bytes of the file "memory" */
    bool is_packed;       /* that is in chunks: cli/pack */
    uint64_t list_checksum;
    uint64_t device_bytes; /* on its devices when it was asked; not in the file */
    char release[24], created[32], command[256];
    struct checkpoint_device devices[CHECKPOINT_DEVICES_MAX];
    unsigned device_count;
};

/* What a snapshot says of a client. */
void checkpoint_manifest_fill(struct checkpoint_manifest *manifest, const struct snapshot *snapshot,
                              const struct command_client *client);

/* Makes the file in the directory and waits until it is on its disk: 0 or -errno. */
int checkpoint_manifest_write(int directory, const struct checkpoint_manifest *manifest);

/* The same in place of the one that is there, which stays after an error. The directory is not yet
 * on its disk. */
int checkpoint_manifest_replace(int directory, const struct checkpoint_manifest *manifest);

/* 0, or 1 after an error message, in which `path` names the directory. */
int checkpoint_manifest_read(const char *path, struct checkpoint_manifest *ret_manifest);

const char *checkpoint_state_name(enum checkpoint_state state);
