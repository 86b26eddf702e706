/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed variables side by side. Host and kernels take turns on variables of all sizes and
 * alignments. These share pages with each other, with variables of another module, and with some
 * that the program never asks for.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 24u
#define SMALL_ONES 100u /* more than travel in one command */
#define UNASKED 3u

struct shape {
    const char *name;
    unsigned alignment;
    size_t size;
    bool asked; /* the program knows its address */
};

static const struct shape shapes[] = {
    {"letter", 1, 1, true},    {"number", 2, 2, true},  {"before", 1, 5, false},
    {"triple", 1, 3, true},    {"name", 1, 17, true},   {"word", 4, 4, true},
    {"between", 1, 1, false},  {"double", 8, 8, true},  {"line", 1, 251, true},
    {"page", 16, 4096, true},  {"more", 1, 4097, true}, {"behind", 1, 7, false},
    {"large", 1, 10001, true}, {"last", 2, 2, true},
};

#define SHAPES (sizeof(shapes) / sizeof(*shapes))
#define VARIABLES (SHAPES + SMALL_ONES)

struct variable {
    unsigned char *at;
    size_t size;
    unsigned char first; /* what its first byte should be; each byte is one more than that before */
};

struct loaded {
    CUlibrary library;
    struct variable variables[VARIABLES];
    unsigned count;
};

/* Adds `by` to each of `n` bytes. Adds to the variables that the program does not ask for, and
 * tells what is in these. Waits for the host. */
static const char kernels[] =
    ".visible .entry add(.param .u64 at, .param .u32 n, .param .u32 by)\n{\n"
    "    .reg .pred %p<2>;\n    .reg .b32 %r<5>;\n    .reg .b64 %rd<2>;\n"
    "    ld.param.u64 %rd1, [at];\n"
    "    ld.param.u32 %r1, [n];\n"
    "    ld.param.u32 %r2, [by];\n"
    "next:\n"
    "    setp.eq.u32 %p1, %r1, 0;\n"
    "    @%p1 bra done;\n"
    "    ld.u8 %r3, [%rd1];\n"
    "    add.u32 %r3, %r3, %r2;\n"
    "    st.u8 [%rd1], %r3;\n"
    "    add.u64 %rd1, %rd1, 1;\n"
    "    sub.u32 %r1, %r1, 1;\n"
    "    bra next;\n"
    "done:\n"
    "    ret;\n}\n"
    ".visible .entry unasked(.param .u64 out)\n{\n"
    "    .reg .b32 %r<2>;\n    .reg .b64 %rd<2>;\n"
    "    ld.param.u64 %rd1, [out];\n"
    "    ld.global.u8 %r1, [before+4];\n"
    "    add.u32 %r1, %r1, 1;\n"
    "    st.global.u8 [before+4], %r1;\n"
    "    st.u32 [%rd1], %r1;\n"
    "    ld.global.u8 %r1, [between];\n"
    "    add.u32 %r1, %r1, 2;\n"
    "    st.global.u8 [between], %r1;\n"
    "    st.u32 [%rd1+4], %r1;\n"
    "    ld.global.u8 %r1, [behind];\n"
    "    add.u32 %r1, %r1, 3;\n"
    "    st.global.u8 [behind], %r1;\n"
    "    st.u32 [%rd1+8], %r1;\n"
    "    ret;\n}\n"
    ".visible .entry hold(.param .u64 word)\n{\n"
    "    .reg .pred %p<2>;\n    .reg .b32 %r<2>;\n    .reg .b64 %rd<2>;\n"
    "    ld.param.u64 %rd1, [word];\n"
    "again:\n"
    "    ld.volatile.u32 %r1, [%rd1];\n"
    "    setp.eq.u32 %p1, %r1, 0;\n"
    "    @%p1 bra again;\n"
    "    ret;\n}\n";

/* ---- the image ---- */

static void declare(char **end, const char *name, unsigned alignment, size_t size)
{
    *end += sprintf(*end, ".visible .global .attribute(.managed) .align %u .b8 %s[%zu];\n",
                    alignment, name, size);
}

static void write_image(char *image)
{
    char name[16];

    image += sprintf(image, ".version 7.0\n.target sm_75\n.address_size 64\n");
    for (unsigned i = 0; i < SHAPES; i++)
        declare(&image, shapes[i].name, shapes[i].alignment, shapes[i].size);
    for (unsigned i = 0; i < SMALL_ONES; i++) {
        sprintf(name, "small%u", i);
        declare(&image, name, 1, 1 + i % 7);
    }
    strcpy(image, kernels);
}

static void find(struct loaded *loaded, const char *name, size_t expected)
{
    struct variable *variable = &loaded->variables[loaded->count++];
    CUdeviceptr address = 0;

    MUST(cuLibraryGetManaged(&address, &variable->size, loaded->library, name));
    IS_TRUE(variable->size == expected);
    variable->at = (unsigned char *)(uintptr_t)address;
    variable->first = 0;
}

static void find_all(struct loaded *loaded)
{
    char name[16];

    for (unsigned i = 0; i < SHAPES; i++)
        if (shapes[i].asked)
            find(loaded, shapes[i].name, shapes[i].size);
    for (unsigned i = 0; i < SMALL_ONES; i++) {
        sprintf(name, "small%u", i);
        find(loaded, name, 1 + i % 7);
    }
}

static struct loaded *load(void)
{
    struct loaded *loaded = calloc(1, sizeof(*loaded));
    char *image = malloc(64 << 10);

    write_image(image);
    MUST(cuLibraryLoadData(&loaded->library, image, NULL, NULL, 0, NULL, NULL, 0));
    free(image);
    find_all(loaded);
    return loaded;
}

static void unload(struct loaded *loaded)
{
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(loaded->library));
    free(loaded);
}

/* ---- turns ---- */

static CUfunction kernel_of(const struct loaded *loaded, const char *name)
{
    CUkernel kernel;

    MUST(cuLibraryGetKernel(&kernel, loaded->library, name));
    return (CUfunction)kernel;
}

static void device_adds(const struct loaded *loaded, struct variable *variable, uint32_t by)
{
    uint32_t size = (uint32_t)variable->size;
    void *parameters[] = {&variable->at, &size, &by};

    launch_one(kernel_of(loaded, "add"), NULL, parameters);
    variable->first += by;
}

static void host_writes(struct variable *variable, unsigned char first)
{
    for (size_t i = 0; i < variable->size; i++)
        variable->at[i] = (unsigned char)(first + i);
    variable->first = first;
}

static bool is_right(const struct variable *variable)
{
    for (size_t i = 0; i < variable->size; i++)
        if (variable->at[i] != (unsigned char)(variable->first + i))
            return false;
    return true;
}

static bool all_are_right(const struct loaded *loaded)
{
    for (unsigned i = 0; i < loaded->count; i++)
        if (!is_right(&loaded->variables[i]))
            return false;
    return true;
}

static void host_writes_all(struct loaded *loaded, unsigned round)
{
    for (unsigned i = 0; i < loaded->count; i++)
        host_writes(&loaded->variables[i], (unsigned char)(7 * round + i));
}

/* Each round another third of them. */
static void device_adds_to_some(struct loaded *loaded, unsigned round)
{
    for (unsigned i = round % 3; i < loaded->count; i += 3)
        device_adds(loaded, &loaded->variables[i], 1 + round);
}

static void all_take_turns(void)
{
    struct loaded *loaded = load();
    bool right = true;

    for (unsigned round = 0; round < ROUNDS; round++) {
        host_writes_all(loaded, round);
        device_adds_to_some(loaded, round);
        MUST(cuCtxSynchronize());
        right = right && all_are_right(loaded);
    }
    IS_TRUE(right);
    unload(loaded);
}

/* The host looks at one and writes another; the rest of the page is as it was. */
static void one_is_written_and_another_read(void)
{
    struct loaded *loaded = load();
    bool right = true;

    host_writes_all(loaded, 0);
    for (unsigned i = 0; i + 1 < loaded->count; i++) {
        device_adds(loaded, &loaded->variables[i], 5);
        MUST(cuCtxSynchronize());
        right = right && is_right(&loaded->variables[i]);
        host_writes(&loaded->variables[i + 1], (unsigned char)i);
    }
    IS_TRUE(right && all_are_right(loaded));
    unload(loaded);
}

static void two_modules_take_turns(void)
{
    struct loaded *first = load(), *second = load();
    bool right = true;

    for (unsigned round = 0; round < ROUNDS; round++) {
        host_writes_all(first, round);
        host_writes_all(second, round + 100);
        device_adds_to_some(round % 2 ? first : second, round);
        MUST(cuCtxSynchronize());
        right = right && all_are_right(first) && all_are_right(second);
    }
    IS_TRUE(right);
    unload(first);
    device_adds_to_some(second, 1);
    MUST(cuCtxSynchronize());
    IS_TRUE(all_are_right(second));
    unload(second);
}

/* Their bytes lie between those that go up and down. */
static void those_not_asked_for_stay(void)
{
    CUdeviceptr out = make_words(UNASKED, 0);
    struct loaded *loaded = load();
    void *parameters[] = {&out};
    bool right = true;

    for (uint32_t round = 1; round <= ROUNDS; round++) {
        host_writes_all(loaded, round);
        launch_one(kernel_of(loaded, "unasked"), NULL, parameters);
        MUST(cuCtxSynchronize());
        right = right && all_are_right(loaded);
        for (uint32_t i = 0; i < UNASKED; i++)
            right = right && word_at(out + 4 * i) == (i + 1) * round;
    }
    IS_TRUE(right);
    MUST(cuMemFree_v2(out));
    unload(loaded);
}

static void prefetch(const struct loaded *loaded, CUdevice where, CUstream stream)
{
    for (unsigned i = 0; i < loaded->count; i++) {
        const struct variable *variable = &loaded->variables[i];

        if (variable->size > 200)
            MUST(cuMemPrefetchAsync((uintptr_t)variable->at, variable->size, where, stream));
    }
    MUST(cuStreamSynchronize(stream));
}

static void the_larger_ones_are_prefetched(void)
{
    struct loaded *loaded = load();
    CUdevice device;
    CUstream stream;
    bool right = true;

    MUST(cuCtxGetDevice(&device));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned round = 0; round < 4; round++) {
        host_writes_all(loaded, round);
        prefetch(loaded, device, stream);
        device_adds_to_some(loaded, round);
        MUST(cuCtxSynchronize());
        prefetch(loaded, CU_DEVICE_CPU, stream);
        right = right && all_are_right(loaded);
    }
    IS_TRUE(right);
    MUST(cuStreamDestroy_v2(stream));
    unload(loaded);
}

/* Leaves no room on the device until the word is not 0. */
static void hold_device(const struct loaded *loaded, CUstream stream, volatile uint32_t **word)
{
    CUdevice device;
    int sms;

    MUST(cuCtxGetDevice(&device));
    MUST(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    MUST(cuLaunchKernel(kernel_of(loaded, "hold"), (unsigned)sms * 4, 1, 1, 1024, 1, 1, 0, stream,
                        (void *[]){word}, NULL));
}

/* Memory that the device has, and that no kernel may use any more. */
static struct variable make_page_of_host(const struct loaded *loaded)
{
    struct variable page = {.size = 4096};
    CUdeviceptr address;

    MUST(cuMemAllocManaged(&address, page.size, CU_MEM_ATTACH_GLOBAL));
    page.at = (unsigned char *)(uintptr_t)address;
    host_writes(&page, 1);
    device_adds(loaded, &page, 1);
    MUST(cuStreamAttachMemAsync(NULL, address, 0, CU_MEM_ATTACH_HOST));
    MUST(cuCtxSynchronize());
    return page;
}

/* The kernel waits for this program, which needs the driver meanwhile. A call of another program
 * that waits for all kernels would keep it out: so nothing else runs beside it. */
static void a_touch_does_not_wait_for_a_kernel(void)
{
    struct loaded *loaded = load();
    struct variable touched = make_page_of_host(loaded), prefetched = make_page_of_host(loaded);
    volatile uint32_t *word;
    CUstream streams[2];

    MUST(cuMemHostAlloc((void **)&word, sizeof(*word), CU_MEMHOSTALLOC_DEVICEMAP));
    *word = 0;
    for (unsigned i = 0; i < 2; i++)
        MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    hold_device(loaded, streams[0], &word);
    IS_TRUE(is_right(&touched));
    MUST(cuMemPrefetchAsync((uintptr_t)prefetched.at, prefetched.size, CU_DEVICE_CPU, streams[1]));
    MUST(cuStreamSynchronize(streams[1]));
    IS_TRUE(is_right(&prefetched));
    *word = 1;
    MUST(cuCtxSynchronize());
    for (unsigned i = 0; i < 2; i++)
        MUST(cuStreamDestroy_v2(streams[i]));
    MUST(cuMemFreeHost((void *)word));
    MUST(cuMemFree_v2((uintptr_t)touched.at));
    MUST(cuMemFree_v2((uintptr_t)prefetched.at));
    unload(loaded);
}

int main(int argc, char **argv)
{
    check_open();
    if (argc > 1 && !strcmp(argv[1], "waits")) {
        RUN(a_touch_does_not_wait_for_a_kernel);
        return check_close();
    }
    RUN(all_take_turns);
    RUN(one_is_written_and_another_read);
    RUN(two_modules_take_turns);
    RUN(those_not_asked_for_stay);
    RUN(the_larger_ones_are_prefetched);
    return check_close();
}
