/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of slots, ours and how another process's is opened.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "fd.h"
#include "ipc_file.h"
#include "shm.h"

#define SLOTS 8192
#define FILE_SIZE ((uint64_t)SLOTS * IPC_SLOT_SIZE)

_Static_assert(sizeof(struct ipc_slot) <= IPC_SLOT_SIZE, "a slot fits a page");
_Static_assert(sizeof(struct ipc_handle) <= sizeof(CUipcMemHandle), "a handle fits CUDA's");

static const char magic[8] = "FunlSoft";

static struct ipc_file {
    int fd;
    char *slots;
    bool used[SLOTS];
    unsigned next;
} file = {.fd = -1};

static bool file_open_locked(void)
{
    _cleanup_fd_ int fd = -1;
    void *slots;

    if (file.fd >= 0)
        return true;
    if (shm_create("funnel-soft-ipc", FILE_SIZE, &fd) || shm_map(fd, FILE_SIZE, NULL, 0, &slots))
        return false;
    madvise(slots, FILE_SIZE, MADV_DONTFORK);
    file.slots = slots;
    file.fd = fd_steal(&fd);
    return true;
}

static struct ipc_slot *slot_at(int slot)
{
    return (struct ipc_slot *)(file.slots + (size_t)slot * IPC_SLOT_SIZE);
}

static int free_slot_locked(void)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        unsigned slot = (file.next + i) % SLOTS;

        if (!file.used[slot])
            return (int)slot;
    }
    return -1;
}

int ipc_slot_take_locked(struct ipc_slot **ret_slot)
{
    struct ipc_token token;
    int slot = file_open_locked() ? free_slot_locked() : -1;

    if (slot < 0 || getrandom(&token, sizeof(token), 0) != sizeof(token))
        return -1;
    file.used[slot] = true;
    file.next = (unsigned)slot + 1;
    memset(slot_at(slot), 0, IPC_SLOT_SIZE);
    slot_at(slot)->token = token;
    *ret_slot = slot_at(slot);
    return slot;
}

/* Who has an event of ours mapped keeps looking at it, so only the name goes. */
void ipc_slot_give_locked(int slot)
{
    slot_at(slot)->kind = IPC_NONE;
    file.used[slot] = false;
}

void ipc_handle_write(void *bytes, enum ipc_kind kind, int slot)
{
    struct ipc_handle handle = {
        .kind = kind,
        .pid = getpid(),
        .fd = file.fd,
        .slot = (uint32_t)slot,
        .token = slot_at(slot)->token,
    };

    memcpy(handle.magic, magic, sizeof(magic));
    memset(bytes, 0, sizeof(CUipcMemHandle));
    memcpy(bytes, &handle, sizeof(handle));
}

CUresult ipc_handle_read(const void *bytes, enum ipc_kind kind, struct ipc_handle *ret_handle)
{
    memcpy(ret_handle, bytes, sizeof(*ret_handle));
    if (memcmp(ret_handle->magic, magic, sizeof(magic)) != 0 || ret_handle->kind != kind ||
        ret_handle->slot >= SLOTS || ret_handle->pid <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    return ret_handle->pid == getpid() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

int ipc_open(const struct ipc_handle *handle, int fd)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->pid, fd);
    return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static bool is_meant(const struct ipc_slot *slot, const struct ipc_handle *handle)
{
    return slot->kind == handle->kind &&
           memcmp(&slot->token, &handle->token, sizeof(slot->token)) == 0;
}

struct ipc_slot *ipc_slot_map(const struct ipc_handle *handle)
{
    _cleanup_fd_ int fd = ipc_open(handle, handle->fd);
    struct ipc_slot *slot;

    if (fd < 0 || shm_check(fd, FILE_SIZE))
        return NULL;
    slot = mmap(NULL, IPC_SLOT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                (off_t)handle->slot * IPC_SLOT_SIZE);
    if (slot == MAP_FAILED)
        return NULL;
    madvise(slot, IPC_SLOT_SIZE, MADV_DONTFORK);
    if (is_meant(slot, handle))
        return slot;
    ipc_slot_unmap(slot);
    return NULL;
}

void ipc_slot_unmap(struct ipc_slot *slot)
{
    munmap(slot, IPC_SLOT_SIZE);
}
