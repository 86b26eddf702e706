/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that several processes share by a file, as NCCL, MPI and PyTorch's workers do, registered
 * with the device. Program, device and the other processes see the same bytes.
 */
#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (3u << 20)
#define PAGE 4096u

static CUmodule module;

static uint8_t *map_file(int fd, size_t offset, size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

    IS_TRUE(pages != MAP_FAILED);
    return pages;
}

/* A file in memory without a name. */
static int make_file(size_t size)
{
    int fd = memfd_create("shared", MFD_CLOEXEC);

    IS_TRUE(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    return fd;
}

/* What another process finds there, and then leaves there. */
static void visit(uint8_t *bytes, size_t size, uint8_t found, uint8_t left)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        bool right = bytes_are(bytes, size, found);

        memset(bytes, left, size);
        _exit(right ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    IS_TRUE(status == 0);
}

static void is_shared_by_all(uint8_t *bytes, size_t size)
{
    CUdeviceptr device = make_words(size / 4, 0);

    memset(bytes, 1, size);
    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(bytes, size, CU_MEMHOSTREGISTER_DEVICEMAP));
    IS_TRUE(bytes_are(bytes, size, 1));
    visit(bytes, size, 1, 2);
    EXPECT(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(device, bytes, size, NULL));
    IS_TRUE(words_are(device, size / 4, 0x02020202));
    fill_words(module, seen_by_device(bytes), 0x03030303, (uint32_t)(size / 4));
    visit(bytes, size, 3, 4);
    IS_TRUE(bytes_are(bytes, size, 4));
    EXPECT(CUDA_SUCCESS, cuMemsetD8_v2(device, 5, size));
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoHAsync_v2(bytes, device, size, NULL));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(NULL));
    visit(bytes, size, 5, 6);
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(bytes));
    visit(bytes, size, 6, 7);
    IS_TRUE(bytes_are(bytes, size, 7));
    MUST(cuMemFree_v2(device));
}

/* As NCCL makes it: the descriptor is closed, and the name stays until all have the memory. */
static void a_file_with_a_name(void)
{
    char name[64];
    uint8_t *bytes;
    int fd;

    snprintf(name, sizeof(name), "/funnel test %d", (int)getpid());
    fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    IS_TRUE(fd >= 0 && ftruncate(fd, SIZE) == 0);
    bytes = map_file(fd, 0, SIZE);
    close(fd);
    is_shared_by_all(bytes, SIZE);
    shm_unlink(name);
    munmap(bytes, SIZE);
}

/* As PyTorch makes it: the descriptor stays, the name is gone. */
static void a_file_without_a_name(void)
{
    int fd = make_file(SIZE);
    uint8_t *bytes = map_file(fd, 0, SIZE);

    is_shared_by_all(bytes, SIZE);
    close(fd);
    munmap(bytes, SIZE);
}

/* A driver may lock so much in several chunks. */
static void a_large_file(void)
{
    const size_t size = 20u << 20;
    int fd = make_file(size);
    uint8_t *bytes = map_file(fd, 0, size);

    is_shared_by_all(bytes, size);
    close(fd);
    munmap(bytes, size);
}

/* Neither the mapping nor the memory begins where the file does, and the file ends within a page.
 */
static void a_part_of_a_file(void)
{
    int fd = make_file(16 * PAGE - 100);
    uint8_t *all = map_file(fd, 0, 16 * PAGE), *part = map_file(fd, 4 * PAGE, 12 * PAGE);
    uint8_t *bytes = part + PAGE + 12;
    const size_t size = 10 * PAGE;

    memset(all, 1, 16 * PAGE - 100);
    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(bytes, size, 0));
    fill_words(module, seen_by_device(bytes), 0x02020202, (uint32_t)(size / 4));
    IS_TRUE(bytes_are(all, 5 * PAGE + 12, 1) && bytes_are(all + 5 * PAGE + 12, size, 2));
    IS_TRUE(bytes_are(all + 15 * PAGE + 12, PAGE - 112, 1));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(bytes));
    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(part, 12 * PAGE - 100, 0));
    EXPECT(CUDA_SUCCESS, cuMemsetD8_v2(seen_by_device(part), 3, 12 * PAGE - 100));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(bytes_are(all, 4 * PAGE, 1) && bytes_are(all + 4 * PAGE, 12 * PAGE - 100, 3));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(part));
    close(fd);
    munmap(all, 16 * PAGE);
    munmap(part, 12 * PAGE);
}

/* One file at two addresses, both registered; the descriptor is not needed any more. */
static void twice(void)
{
    int fd = make_file(SIZE);
    uint8_t *one = map_file(fd, 0, SIZE), *other = map_file(fd, 0, SIZE);

    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(one, SIZE, 0));
    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(other, SIZE, 0));
    EXPECT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(other, SIZE, 0));
    close(fd);
    fill_words(module, seen_by_device(one), 0x09090909, SIZE / 8);
    IS_TRUE(bytes_are(other, SIZE / 2, 9) && bytes_are(other + SIZE / 2, SIZE / 2, 0));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(one));
    fill_words(module, seen_by_device(other) + SIZE / 2, 0x08080808, SIZE / 8);
    IS_TRUE(bytes_are(one, SIZE / 2, 9) && bytes_are(one + SIZE / 2, SIZE / 2, 8));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(other));
    EXPECT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(other));
    munmap(one, SIZE);
    munmap(other, SIZE);
}

static void what_an_address_is(void)
{
    int fd = make_file(4 * PAGE);
    uint8_t *pages = map_file(fd, 0, 4 * PAGE);
    CUdeviceptr device = 0;
    unsigned type = 0;
    void *host = NULL;

    MUST(cuMemHostRegister_v2(pages, 4 * PAGE, 0));
    EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                               (CUdeviceptr)(uintptr_t)(pages + 5)));
    IS_TRUE(type == CU_MEMORYTYPE_HOST);
    EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                               (CUdeviceptr)(uintptr_t)(pages + 5)));
    IS_TRUE(device == seen_by_device(pages + 5));
    EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, device));
    IS_TRUE(host == pages + 5);
    MUST(cuMemHostUnregister(pages));
    close(fd);
    munmap(pages, 4 * PAGE);
}

/* What has been there stays the file's, and what the program has mapped since is left alone. */
static void unmapped_in_between(void)
{
    int fd = make_file(4 * PAGE);
    uint8_t *pages = map_file(fd, 0, 4 * PAGE), *again;

    MUST(cuMemHostRegister_v2(pages, 4 * PAGE, 0));
    fill_words(module, seen_by_device(pages), 0x01010101, PAGE);
    munmap(pages, 4 * PAGE);
    again = mmap(pages, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                 -1, 0);
    memset(again, 5, 4 * PAGE);
    cuMemHostUnregister(pages);
    IS_TRUE(bytes_are(again, 4 * PAGE, 5));
    munmap(again, 4 * PAGE);
    pages = map_file(fd, 0, 4 * PAGE);
    IS_TRUE(bytes_are(pages, 4 * PAGE, 1));
    close(fd);
    munmap(pages, 4 * PAGE);
}

static void a_context_that_ends(void)
{
    int fd = make_file(SIZE);
    uint8_t *pages = map_file(fd, 0, SIZE);
    CUcontext before, context;

    memset(pages, 4, SIZE);
    MUST(cuCtxGetCurrent(&before));
    MUST(cuCtxCreate_v4(&context, NULL, 0, 0));
    MUST(cuMemHostRegister_v2(pages, SIZE, 0));
    MUST(cuCtxDestroy_v2(context));
    MUST(cuCtxSetCurrent(before));
    IS_TRUE(bytes_are(pages, SIZE, 4));
    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(pages, SIZE, 0));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(pages));
    close(fd);
    munmap(pages, SIZE);
}

/* Each has its own memory and gets it alone, whatever was registered before. */
static void one_after_the_other(void)
{
    for (unsigned i = 1; i <= 30; i++) {
        int fd = make_file(SIZE);
        uint8_t *pages = map_file(fd, 0, SIZE);

        EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(pages, SIZE, 0));
        IS_TRUE(bytes_are(pages, SIZE, 0));
        EXPECT(CUDA_SUCCESS, cuMemsetD8_v2(seen_by_device(pages), (uint8_t)i, SIZE));
        EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
        IS_TRUE(bytes_are(pages, SIZE, (uint8_t)i));
        EXPECT(CUDA_SUCCESS, cuMemHostUnregister(pages));
        close(fd);
        munmap(pages, SIZE);
    }
}

/* ---- another process that uses the device ---- */

/* As a rank of NCCL beside this one: it finds what the first one's device wrote, by its own. */
static int be_the_other(int fd)
{
    uint8_t *bytes = map_file(fd, 0, SIZE);
    CUdeviceptr words;

    MUST(cuMemHostRegister_v2(bytes, SIZE, 0));
    words = seen_by_device(bytes);
    IS_TRUE(words_are(words, SIZE / 4, 0x06060606));
    fill_words(module, words, 0x07070707, SIZE / 4);
    return check_close();
}

static int run_the_other(int fd)
{
    char number[16];
    int status = -1;

    snprintf(number, sizeof(number), "%d", fd);
    pid_t pid = fork();
    if (pid == 0) {
        fcntl(fd, F_SETFD, 0);
        execl("/proc/self/exe", "shared_files", number, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return status;
}

static void two_devices_of_processes(void)
{
    int fd = make_file(SIZE);
    uint8_t *bytes = map_file(fd, 0, SIZE);

    EXPECT(CUDA_SUCCESS, cuMemHostRegister_v2(bytes, SIZE, 0));
    fill_words(module, seen_by_device(bytes), 0x06060606, SIZE / 4);
    IS_TRUE(run_the_other(fd) == 0);
    IS_TRUE(bytes_are(bytes, SIZE, 7));
    IS_TRUE(words_are(seen_by_device(bytes), SIZE / 4, 0x07070707));
    EXPECT(CUDA_SUCCESS, cuMemHostUnregister(bytes));
    close(fd);
    munmap(bytes, SIZE);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    check_open();
    module = load_kernels();
    if (argc > 1)
        return be_the_other(atoi(argv[1]));
    RUN(a_file_with_a_name);
    RUN(a_file_without_a_name);
    RUN(a_large_file);
    RUN(a_part_of_a_file);
    RUN(twice);
    RUN(what_an_address_is);
    RUN(unmapped_in_between);
    RUN(a_context_that_ends);
    RUN(one_after_the_other);
    RUN(two_devices_of_processes);
    MUST(cuModuleUnload(module));
    return check_close();
}
