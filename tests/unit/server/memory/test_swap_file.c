/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files with the contents of device memory, on a file system in memory and on another one. What was
 * written is read again, zeros take no space, and damage is noticed.
 */
#include "swap_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_guard.h"
#include "unit.h"

#define CHUNKS 4u
#define TAIL 4096u
#define BYTES (CHUNKS * SWAP_FILE_CHUNK + TAIL)

static int open_in(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    return fd;
}

static uint64_t size_of(uint64_t at)
{
    return BYTES - at < SWAP_FILE_CHUNK ? BYTES - at : SWAP_FILE_CHUNK;
}

/* The second chunk is all zero. */
static unsigned char *make_contents(void)
{
    unsigned char *bytes = calloc(1, BYTES);

    assert_non_null(bytes);
    for (uint64_t i = 0; i < BYTES; i++)
        bytes[i] = i / SWAP_FILE_CHUNK == 1 ? 0 : (unsigned char)(i * 7 + i / 4096);
    return bytes;
}

/* From the last chunk to the first, as threads might. */
static struct swap_entry write_all_of(int fd, const unsigned char *bytes)
{
    struct swap_entry entry = {.address = 0x600000000000, .size = BYTES};
    uint64_t hashes[CHUNKS + 1];

    assert_int_equal(swap_file_begin(fd, 1, BYTES, &entry.offset), 0);
    for (unsigned i = CHUNKS + 1; i-- > 0;) {
        uint64_t at = i * SWAP_FILE_CHUNK;
        assert_int_equal(
            swap_file_write(fd, entry.offset + at, bytes + at, size_of(at), &hashes[i]), 0);
    }
    entry.hash = swap_file_hash(hashes, CHUNKS + 1);
    assert_int_equal(swap_file_complete(fd, &entry, 1), 0);
    return entry;
}

static uint64_t read_all_of(int fd, const struct swap_entry *entry, unsigned char *bytes)
{
    uint64_t hashes[CHUNKS + 1];

    for (unsigned i = 0; i <= CHUNKS; i++) {
        uint64_t at = i * SWAP_FILE_CHUNK;
        assert_int_equal(
            swap_file_read(fd, entry->offset + at, bytes + at, size_of(at), &hashes[i]), 0);
    }
    return swap_file_hash(hashes, CHUNKS + 1);
}

static void write_and_read_in(const char *directory)
{
    unsigned char *bytes = make_contents(), *seen = malloc(BYTES);
    int fd = open_in(directory);
    struct swap_entry entry = write_all_of(fd, bytes), found;

    assert_non_null(seen);
    assert_int_equal(swap_file_find(fd, entry.address, entry.size, &found), 0);
    assert_memory_equal(&entry, &found, sizeof(entry));
    assert_int_equal(read_all_of(fd, &found, seen), entry.hash);
    assert_memory_equal(seen, bytes, BYTES);
    assert_int_equal(swap_file_find(fd, entry.address, 1, &found), -ENOENT);

    assert_int_equal(pwrite(fd, "x", 1, (off_t)(entry.offset + 100)), 1);
    assert_int_not_equal(read_all_of(fd, &entry, seen), entry.hash);
    assert_int_equal(pwrite(fd, "x", 1, 40), 1);
    assert_int_equal(swap_file_find(fd, entry.address, entry.size, &found), -EBADMSG);
    close(fd);
    free(bytes);
    free(seen);
}

static void contents_return(void **state)
{
    (void)state;
    file_guard_init();
    write_and_read_in("/dev/shm");
    write_and_read_in("/tmp");
}

static void zeros_are_holes(void **state)
{
    unsigned char *bytes = make_contents();
    int fd = open_in("/dev/shm");
    struct stat status;

    (void)state;
    write_all_of(fd, bytes);
    assert_int_equal(fstat(fd, &status), 0);
    assert_true((uint64_t)status.st_blocks * 512 < BYTES);
    close(fd);
    free(bytes);
}

static void a_cut_file_is_damaged(void **state)
{
    unsigned char *bytes = make_contents();
    int fd = open_in("/dev/shm");
    struct swap_entry entry = write_all_of(fd, bytes);
    uint64_t hash;

    (void)state;
    assert_int_equal(ftruncate(fd, (off_t)(entry.offset + SWAP_FILE_CHUNK)), 0);
    assert_int_equal(
        swap_file_read(fd, entry.offset + SWAP_FILE_CHUNK, bytes, SWAP_FILE_CHUNK, &hash),
        -EBADMSG);
    close(fd);
    free(bytes);
}

/* A chunk that has become all zero hides what was there before. */
static void a_chunk_is_written_again(void **state)
{
    int fd = open_in("/dev/shm");
    unsigned char *bytes = make_contents(), *seen = malloc(SWAP_FILE_CHUNK);
    struct swap_entry entry = write_all_of(fd, bytes);
    uint64_t written, read, end = entry.offset + BYTES;

    memset(bytes, 0, SWAP_FILE_CHUNK);
    assert_int_equal(swap_file_rewrite(fd, entry.offset, bytes, SWAP_FILE_CHUNK, &written), 0);
    assert_int_equal(swap_file_read(fd, entry.offset, seen, SWAP_FILE_CHUNK, &read), 0);
    assert_int_equal(read, written);
    assert_memory_equal(seen, bytes, SWAP_FILE_CHUNK);
    assert_int_equal(swap_file_extend(fd, end + SWAP_FILE_CHUNK), 0);
    assert_int_equal(swap_file_read(fd, end, seen, SWAP_FILE_CHUNK, &read), 0);
    assert_memory_equal(seen, bytes, SWAP_FILE_CHUNK);
    close(fd);
    free(seen);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents_return),
        cmocka_unit_test(zeros_are_holes),
        cmocka_unit_test(a_cut_file_is_damaged),
        cmocka_unit_test(a_chunk_is_written_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
