/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that processes with the software GPU share. There is no server between them: a process
 * has one memory file of slots, which others open through /proc. The kernel permits that only to
 * processes that may debug it. A handle names process, file and slot, and a random number of 128
 * bits that the slot must contain.
 *
 * Functions named _locked need soft_lock; any thread may call the others. Contents of slots and
 * handles of other processes are checked before they are used.
 */
#pragma once

#include <sys/types.h>

#include "soft.h"

enum ipc_kind {
    IPC_NONE,
    IPC_MEMORY,
    IPC_EVENT,
};

struct ipc_token {
    uint64_t words[2];
};

/* The 64 bytes of a handle. */
struct ipc_handle {
    char magic[8];
    uint32_t kind;
    pid_t pid;
    int32_t fd; /* of the slots, in that process */
    uint32_t slot;
    struct ipc_token token;
};

/* An allocation: a range of the process's arena. */
struct ipc_range {
    int32_t fd; /* of the arena, in that process */
    uint32_t device;
    uint64_t offset, size;
};

/* Records of an event have numbers. The process that made the last record looks for its end in a
 * mark. There are so many marks that an old record is not mixed up with a present one. */
#define IPC_EVENT_MARKS 128

struct ipc_event {
    uint64_t recorded; /* the number of the last record, 0 = none yet */
    struct {
        uint64_t done; /* the highest number that came to its end here */
        pid_t pid;     /* the process that records */
    } marks[IPC_EVENT_MARKS];
};

/* A page of the file, which others may map. They may also write it, so nothing that this process
 * relies on is read back from here. */
struct ipc_slot {
    struct ipc_token token;
    uint32_t kind;
    union {
        struct ipc_range range;
        struct ipc_event event;
    };
};

#define IPC_SLOT_SIZE 4096

/* A slot of ours, zeroed and with a token, under which others find it once its kind is set:
 * -1 when there is none left. */
int ipc_slot_take_locked(struct ipc_slot **ret_slot);
/* Others that have it mapped find no kind any more. */
void ipc_slot_give_locked(int slot);
/* Writes the 64 bytes of a handle. */
void ipc_handle_write(void *bytes, enum ipc_kind kind, int slot);

/* Reads a handle of another process: CUDA_ERROR_INVALID_VALUE when it is none, or not of the kind;
 * CUDA_ERROR_INVALID_CONTEXT when it is our own. */
CUresult ipc_handle_read(const void *bytes, enum ipc_kind kind, struct ipc_handle *ret_handle);
/* A file of its process, for the caller to close, or -1. */
int ipc_open(const struct ipc_handle *handle, int fd);
/* The slot that it names, mapped, or NULL. ipc_slot_unmap() ends that. */
struct ipc_slot *ipc_slot_map(const struct ipc_handle *handle);
void ipc_slot_unmap(struct ipc_slot *slot);
