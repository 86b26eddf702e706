/* SPDX-License-Identifier: Apache-2.0 */
/* See checkpoint_pack.h. */
#include "checkpoint_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chunk_list.h"
#include "cli.h"
#include "fd.h"
#include "text.h"

#define TEMPORARY "memory.new"

/* A checkpoint's directory, its file, and its links to chunks. */
struct packed {
    const char *path;
    int directory, memory, chunks;
    struct chunk_list list;
    struct chunk_buffers buffers;
    char name[CHUNK_NAME]; /* the chunk that an error is about */
};

static int open_directory(const char *path, struct packed *ret_packed)
{
    *ret_packed = (struct packed){.path = path, .memory = -1, .chunks = -1};
    ret_packed->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return ret_packed->directory < 0 ? -errno : chunk_buffers_init(&ret_packed->buffers);
}

static void close_all(struct packed *packed)
{
    fd_close(&packed->directory);
    fd_close(&packed->memory);
    fd_close(&packed->chunks);
    chunk_list_fini(&packed->list);
    chunk_buffers_fini(&packed->buffers);
}

static int sync_all(const struct packed *packed)
{
    return syncfs(packed->directory) ? -errno : 0;
}

static size_t size_of_chunk(uint64_t offset, uint64_t end)
{
    return end - offset < CHUNK_SIZE ? (size_t)(end - offset) : CHUNK_SIZE;
}

static bool is_zero(const unsigned char *data, size_t size)
{
    return !size || (!*data && !memcmp(data, data + 1, size - 1));
}

/* ---- into the store ---- */

/* A lease for writing is given when no other process has the file open. Where a file system has no
 * leases there is no answer. */
static bool is_in_use(int fd)
{
    void (*before)(int) = signal(SIGIO, SIG_IGN); /* another process opens the file */
    bool is_taken = fcntl(fd, F_SETLEASE, F_WRLCK) && errno == EAGAIN;

    fcntl(fd, F_SETLEASE, F_UNLCK);
    signal(SIGIO, before);
    return is_taken;
}

static int open_memory(struct packed *packed, uint64_t size)
{
    struct stat status;

    packed->memory =
        openat(packed->directory, "memory", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (packed->memory < 0 || fstat(packed->memory, &status))
        return -errno;
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size != size)
        return -EBADMSG;
    return is_in_use(packed->memory) ? -EBUSY : 0;
}

static int open_chunks(struct packed *packed)
{
    if (mkdirat(packed->directory, "chunks", 0700) && errno != EEXIST)
        return -errno;
    packed->chunks =
        openat(packed->directory, "chunks", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return packed->chunks < 0 ? -errno : 0;
}

static int put_chunk(struct packed *packed, struct chunk_store *store, uint64_t offset, size_t size)
{
    int error = pread_all(packed->memory, packed->buffers.data, size, (off_t)offset);

    if (error)
        return error;
    if (is_zero(packed->buffers.data, size)) {
        chunk_list_add(&packed->list, "0");
        return 0;
    }
    error = chunk_store_put(store, packed->chunks, packed->buffers.data, size, packed->name);
    if (!error)
        chunk_list_add(&packed->list, packed->name);
    return error;
}

static int put_chunks(struct packed *packed, struct chunk_store *store, uint64_t end)
{
    int error = chunk_list_begin(&packed->list);

    for (uint64_t at = 0; at < end && !error; at += CHUNK_SIZE)
        error = put_chunk(packed, store, at, size_of_chunk(at, end));
    return error;
}

static int make_chunks(struct packed *packed, struct chunk_store *store,
                       struct checkpoint_manifest *manifest)
{
    int error = open_chunks(packed);

    if (!error)
        error = put_chunks(packed, store, manifest->memory_size);
    if (!error)
        error = chunk_list_write(&packed->list, packed->directory, &manifest->list_checksum);
    manifest->is_packed = true;
    return error ? error : sync_all(packed);
}

static int remove_memory(const struct packed *packed)
{
    return unlinkat(packed->directory, "memory", 0) && errno != ENOENT ? -errno : 0;
}

/* Links that the manifest does not count would keep their chunks in the store. */
static int pack(struct packed *packed, struct chunk_store *store,
                struct checkpoint_manifest *manifest)
{
    int error = open_memory(packed, manifest->memory_size);

    if (error)
        return error;
    error = make_chunks(packed, store, manifest);
    if (!error)
        error = checkpoint_manifest_replace(packed->directory, manifest);
    if (error) {
        checkpoint_chunks_remove(packed->directory);
        return error;
    }
    return fsync(packed->directory) ? -errno : remove_memory(packed);
}

static int fail_apart(const char *store, const char *path)
{
    return cli_fail("%s and %s must be on the same file system", store, path);
}

static int fail_to_pack(const struct packed *packed, const struct chunk_store *store, int error)
{
    switch (error) {
    case -EBUSY:
        return cli_fail("%s/memory is in use: a program has not come back from it yet. Pack it "
                        "when that goes on, or has ended",
                        packed->path);
    case -EBADMSG:
        return cli_fail("%s/memory does not have the size that its manifest says", packed->path);
    case -EXDEV:
        return fail_apart(store->path, packed->path);
    case -ENOSPC:
    case -EDQUOT:
        return cli_fail("%s: the file system is full, or a quota of it is reached; funnel pack "
                        "--clean %s frees what was written in vain",
                        store->path, store->path);
    case -EEXIST:
        return cli_fail("%s has other contents with the hash %s; use another store", store->path,
                        packed->name);
    default:
        return cli_fail("%s cannot be packed into %s: %s", packed->path, store->path,
                        strerror(-error));
    }
}

/* It came back as a file, which is there beside the chunks. */
static int drop_memory(const struct packed *packed)
{
    _cleanup_fd_ int memory =
        openat(packed->directory, "memory", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (memory < 0)
        return errno == ENOENT ? 0 : -errno;
    if (is_in_use(memory))
        return -EBUSY;
    return unlinkat(packed->directory, "memory", 0) ? -errno : 0;
}

static void print_totals(const char *path, const struct chunk_store *before,
                         const struct chunk_store *after)
{
    printf("%s: %" PRIu64 " MiB are new in %s, %" PRIu64 " MiB were there\n", path,
           (after->added - before->added) >> 20, after->path,
           (after->shared - before->shared) >> 20);
    if (after->damaged > before->damaged)
        printf("%" PRIu64 " damaged chunks of %s were replaced; checkpoints that have them are "
               "damaged\n",
               after->damaged - before->damaged, after->path);
}

int checkpoint_pack(const char *path, struct chunk_store *store)
{
    const struct chunk_store before = *store;
    struct checkpoint_manifest manifest;
    struct packed packed;

    if (checkpoint_manifest_read(path, &manifest))
        return 1;
    int error = open_directory(path, &packed);
    if (!error)
        error = manifest.is_packed ? drop_memory(&packed) : pack(&packed, store, &manifest);
    int status = error ? fail_to_pack(&packed, store, error) : 0;
    if (!error)
        print_totals(path, &before, store);
    close_all(&packed);
    return status;
}

int checkpoint_pack_check(const struct checkpoint_directory *checkpoint,
                          const struct chunk_store *store)
{
    struct stat one, other;

    return fstat(store->fd, &one) || fstat(checkpoint->directory, &other) ||
                   one.st_dev == other.st_dev
               ? 0
               : fail_apart(store->path, checkpoint->path);
}

static int pack_new(struct packed *packed, struct chunk_store *store,
                    struct checkpoint_manifest *manifest)
{
    struct stat status;
    int error = fstat(packed->memory, &status) ? -errno : chunk_buffers_init(&packed->buffers);

    manifest->memory_size = error ? 0 : (uint64_t)status.st_size;
    if (!error)
        error = make_chunks(packed, store, manifest);
    return error ? error : remove_memory(packed);
}

int checkpoint_pack_new(const struct checkpoint_directory *checkpoint, struct chunk_store *store,
                        struct checkpoint_manifest *manifest)
{
    const struct chunk_store before = *store;
    struct packed packed = {.path = checkpoint->path,
                            .directory = checkpoint->directory,
                            .memory = checkpoint->memory,
                            .chunks = -1};
    int error = pack_new(&packed, store, manifest);
    int status = error ? fail_to_pack(&packed, store, error) : 0;

    if (!error)
        print_totals(checkpoint->path, &before, store);
    packed.directory = packed.memory = -1; /* they are the caller's */
    close_all(&packed);
    return status;
}

/* ---- and out again ---- */

static int read_chunk(struct packed *packed, size_t size)
{
    _cleanup_fd_ int fd =
        openat(packed->chunks, packed->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    return fd < 0 ? -errno : chunk_read(fd, packed->name, size, &packed->buffers);
}

static int take_chunk(struct packed *packed, const char **next, uint64_t offset, size_t size)
{
    int error = chunk_list_next(next, packed->name);

    if (error) {
        *packed->name = '\0';
        return -EBADMSG;
    }
    if (!strcmp(packed->name, "0"))
        return 0;
    error = read_chunk(packed, size);
    if (error)
        return error;
    if (lseek(packed->memory, (off_t)offset, SEEK_SET) < 0)
        return -errno;
    return write_all(packed->memory, packed->buffers.data, size);
}

static int take_chunks(struct packed *packed, uint64_t end)
{
    const char *next = packed->list.text;
    int error = ftruncate(packed->memory, (off_t)end) ? -errno : 0;

    for (uint64_t at = 0; at < end && !error; at += CHUNK_SIZE)
        error = take_chunk(packed, &next, at, size_of_chunk(at, end));
    return error;
}

static int make_memory(struct packed *packed, uint64_t size)
{
    packed->memory = fd_create_anew(packed->directory, TEMPORARY);
    if (packed->memory < 0)
        return -errno;
    int error = take_chunks(packed, size);
    if (!error && fsync(packed->memory))
        error = -errno;
    return fd_put_in_place(packed->directory, TEMPORARY, "memory", error);
}

static int unpack(struct packed *packed, const struct checkpoint_manifest *manifest)
{
    int error = chunk_list_read(packed->directory, manifest->list_checksum, &packed->list);

    if (!error)
        error = open_chunks(packed);
    return error ? error : make_memory(packed, manifest->memory_size);
}

static int fail_to_unpack(const struct packed *packed, int error)
{
    if (error == -ENOSPC || error == -EDQUOT)
        return cli_fail("%s: the file system is full, or a quota of it is reached", packed->path);
    if (*packed->name && (error == -EBADMSG || error == -ENOENT))
        return cli_fail("%s/chunks/%s is %s, so the memory cannot be restored", packed->path,
                        packed->name, error == -ENOENT ? "missing" : "damaged");
    if (error == -EBADMSG || error == -ENOENT)
        return cli_fail("%s/chunk-list is not as it was written", packed->path);
    return cli_fail("%s cannot be unpacked: %s", packed->path, strerror(-error));
}

int checkpoint_unpack(const char *path, const struct checkpoint_manifest *manifest)
{
    struct packed packed;
    int error = open_directory(path, &packed);

    if (!error)
        error = unpack(&packed, manifest);
    int status = error ? fail_to_unpack(&packed, error) : 0;
    close_all(&packed);
    return status;
}

/* ---- the store ---- */

static int fail_to_open(const char *path, int error)
{
    if (error == -EPERM)
        return cli_fail("the store %s is another user's, or others may write to it; name a store "
                        "of your own, or take their rights (chmod go-w)",
                        path);
    return cli_fail("the store %s cannot be used: %s", path, strerror(-error));
}

int pack_open_store(struct chunk_store *store, const char *path, bool compress)
{
    int error = chunk_store_open(store, path, compress);

    if (!error)
        return 0;
    chunk_store_close(store);
    return fail_to_open(path, error);
}

int pack_clean_store(const char *path)
{
    struct chunk_store store;
    uint64_t files, bytes;

    if (pack_open_store(&store, path, false))
        return 1;
    int error = chunk_store_clean(&store, &files, &bytes);
    chunk_store_close(&store);
    if (error)
        return fail_to_open(path, error);
    printf("%s: %" PRIu64 " chunks that no checkpoint has are deleted, %" PRIu64 " MiB\n", path,
           files, bytes >> 20);
    return 0;
}
