/* SPDX-License-Identifier: Apache-2.0 */
/* The images that the server keeps, and the clients that it lends them to. */
#include "image_store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image_key.h"
#include "shm.h"
#include "unit.h"

#define SIZE (2 * (size_t)IMAGE_KEY_MIN)
#define OWNER 1000

/* A byte on which no key depends. */
#define UNSEEN 8300

static struct image_store store;
static unsigned char image[SIZE];

static int setup(void **state)
{
    (void)state;
    image_store_init(&store);
    for (size_t i = 0; i < SIZE; i++)
        image[i] = (unsigned char)(i * 7 + i / 256 + 1);
    return 0;
}

static int teardown(void **state)
{
    bool empty = list_empty(&store.images) && store.files == 0;

    (void)state;
    image_store_fini(&store);
    return empty ? 0 : -1;
}

static struct stored_image *enter_file(int fd)
{
    struct stored_image *code = NULL;

    assert_int_equal(image_store_add(&store, fd, SIZE, OWNER, &code), CUDA_SUCCESS);
    return code;
}

static struct stored_image *enter(size_t size)
{
    struct stored_image *code = NULL;
    int fd;

    assert_int_equal(shm_create_read_only("test", image, size, &fd), 0);
    assert_int_equal(image_store_add(&store, fd, size, OWNER, &code), CUDA_SUCCESS);
    assert_memory_equal(code->bytes, image, size);
    assert_int_equal(((const char *)code->bytes)[size], 0);
    return code;
}

static struct stored_image *find(uid_t owner)
{
    return image_store_find(&store, image_key(image, SIZE), SIZE, owner);
}

static void the_same_image_is_kept_once(void **state)
{
    struct stored_image *first = enter(SIZE), *second = enter(SIZE);

    (void)state;
    assert_ptr_equal(first, second);
    stored_image_unref(first);
    assert_ptr_equal(find(OWNER), second);
    stored_image_unref(second);
    stored_image_unref(second);
    assert_null(find(OWNER));
}

static void large_images_are_lent_to_their_user(void **state)
{
    struct stored_image *code = enter(SIZE);

    (void)state;
    assert_true(code->fd >= 0);
    assert_null(find(OWNER + 1));
    assert_null(image_store_find(&store, image_key(image, SIZE), SIZE - 1, OWNER));
    assert_null(image_store_find_number(&store, code->number, OWNER + 1));
    assert_null(image_store_find_number(&store, code->number + 1, OWNER));
    assert_ptr_equal(find(OWNER), code);
    assert_ptr_equal(image_store_find_number(&store, code->number, OWNER), code);
    for (int i = 0; i < 3; i++)
        stored_image_unref(code);
}

static void small_images_are_copied(void **state)
{
    struct stored_image *code = enter(100);

    (void)state;
    assert_int_equal(code->fd, -1);
    assert_null(image_store_find(&store, image_key(image, 100), 100, OWNER));
    stored_image_unref(code);
}

/* Of two images with the same key, a program gets the one that was used last. */
static void the_image_that_was_used_last_is_lent(void **state)
{
    struct stored_image *first = enter(SIZE), *second;
    uint64_t key = image_key(image, SIZE);

    (void)state;
    image[UNSEEN] ^= 1;
    assert_int_equal(image_key(image, SIZE), key);
    second = enter(SIZE);
    assert_ptr_not_equal(first, second);
    assert_ptr_equal(find(OWNER), second);
    assert_ptr_equal(image_store_find_number(&store, first->number, OWNER), first);
    assert_ptr_equal(find(OWNER), first);
    stored_image_unref(first);
    stored_image_unref(first);
    stored_image_unref(first);
    stored_image_unref(second);
    stored_image_unref(second);
}

static int make_file(unsigned seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, image, SIZE, 0), (ssize_t)SIZE);
    assert_int_equal(pwrite(fd, "", 1, SIZE), 1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | seals), 0);
    return fd;
}

/* Otherwise its client could give the next one another image than was compared. */
static void writable_files_are_copied(void **state)
{
    int fd = make_file(0), own = dup(fd);
    struct stored_image *code = enter_file(fd);

    (void)state;
    assert_int_equal(code->fd, -1);
    assert_null(find(OWNER));
    assert_int_equal(pwrite(own, "changed", 7, 0), 7);
    assert_memory_equal(code->bytes, image, SIZE);
    stored_image_unref(code);
    close(own);
}

static void files_with_holes_are_copied(void **state)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct stored_image *code;

    (void)state;
    assert_int_equal(pwrite(fd, image, SIZE / 2, 0), (ssize_t)SIZE / 2);
    assert_int_equal(pwrite(fd, image, SIZE, SIZE), (ssize_t)SIZE);
    assert_int_equal(pwrite(fd, "", 1, SIZE), 1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE), 0);
    code = enter_file(fd);
    assert_int_equal(code->fd, -1);
    stored_image_unref(code);
}

static void files_without_a_nul_are_copied(void **state)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct stored_image *code;

    (void)state;
    assert_int_equal(pwrite(fd, image, SIZE, 0), (ssize_t)SIZE);
    assert_int_equal(pwrite(fd, "x", 1, SIZE), 1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE), 0);
    code = enter_file(fd);
    assert_int_equal(code->fd, -1);
    assert_int_equal(((const char *)code->bytes)[SIZE], 0);
    stored_image_unref(code);
}

static void the_number_of_files_is_limited(void **state)
{
    struct stored_image *first, *second;

    (void)state;
    store.files_max = 1;
    first = enter(SIZE);
    image[0] ^= 1;
    second = enter(SIZE);
    assert_true(first->fd >= 0);
    assert_int_equal(second->fd, -1);
    stored_image_unref(first);
    stored_image_unref(second);
    second = enter(SIZE);
    assert_true(second->fd >= 0);
    stored_image_unref(second);
}

static void unreadable_files_are_refused(void **state)
{
    struct stored_image *code = NULL;
    int fd = make_file(F_SEAL_WRITE);

    (void)state;
    assert_int_equal(image_store_add(&store, fd, 2 * SIZE, OWNER, &code), CUDA_ERROR_INVALID_VALUE);
    assert_null(code);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(the_same_image_is_kept_once),    CASE(large_images_are_lent_to_their_user),
        CASE(small_images_are_copied),        CASE(the_image_that_was_used_last_is_lent),
        CASE(writable_files_are_copied),      CASE(files_with_holes_are_copied),
        CASE(files_without_a_nul_are_copied), CASE(the_number_of_files_is_limited),
        CASE(unreadable_files_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
