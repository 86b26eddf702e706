/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX is compiled in a process for each image: with a library of the test's, which misbehaves, and
 * with NVIDIA's where that is installed.
 */
#include "ptx_compiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image_format.h"
#include "process_limits.h"
#include "unit.h"

#define SM 90
#define NVIDIA "/usr/local/cuda/lib64/libnvJitLink.so"

static const struct jit_link_options plain = {.sm = SM, .optimization = 3};

static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                           ".visible .entry empty()\n{\nret;\n}\n";

static struct ptx_compiler *start(const char *path)
{
    struct ptx_compiler *compiler;
    char why[IMAGE_PROCESS_WHY];

    assert_int_equal(ptx_compiler_start(path, why, sizeof(why), &compiler), 0);
    return compiler;
}

static int setup(void **state)
{
    *state = start(getenv("FUNNEL_TEST_JIT_LINK"));
    return 0;
}

static int teardown(void **state)
{
    ptx_compiler_stop(*state);
    return 0;
}

static int compile(const struct ptx_compiler *compiler, const char *bytes,
                   const struct jit_link_options *options, struct ptx_compiled *ret_compiled)
{
    const struct image_source source = {.fd = -1, .bytes = bytes, .size = strlen(bytes)};

    return ptx_compiler_compile(compiler, &source, options, ret_compiled);
}

static void assert_gives(const struct ptx_compiler *compiler, const char *bytes, int error,
                         const char *log)
{
    struct ptx_compiled compiled;

    assert_int_equal(compile(compiler, bytes, &plain, &compiled), error);
    assert_string_equal(compiled.log, log);
    ptx_compiled_fini(&compiled);
}

static void assert_compiles(const struct ptx_compiler *compiler, const char *bytes,
                            const struct jit_link_options *options, const char *comment)
{
    struct ptx_compiled compiled;

    assert_int_equal(compile(compiler, bytes, options, &compiled), 0);
    assert_int_equal(compiled.code_size, strlen(comment) + strlen(bytes) + 1);
    assert_memory_equal(compiled.code, comment, strlen(comment));
    assert_string_equal((const char *)compiled.code + strlen(comment), bytes);
    ptx_compiled_fini(&compiled);
}

static void code_comes_back(void **state)
{
    assert_compiles(*state, text, &plain, "// -arch=sm_90 -O3\n");
}

static void options_arrive(void **state)
{
    const struct jit_link_options all = {
        .sm = 120, .max_registers = 77, .optimization = 0, .debug_info = true, .line_info = true};

    assert_compiles(*state, text, &all, "// -arch=sm_120 -O0 -maxrregcount=77 -g -lineinfo\n");
}

static void specific_architectures_keep_their_letter(void **state)
{
    assert_compiles(*state, ".version 8.0\n.target sm_90a\n", &plain, "// -arch=sm_90a -O3\n");
    assert_compiles(*state, ".version 8.0\n.target\tsm_90f, debug\n", &plain,
                    "// -arch=sm_90f -O3\n");
    assert_compiles(*state, ".version 8.0\n.target compute_90a\n", &plain, "// -arch=sm_90 -O3\n");
    assert_compiles(*state, ".version 8.0\n.target", &plain, "// -arch=sm_90 -O3\n");
}

static void a_large_text_comes_back(void **state)
{
    static char large[1 << 15];

    memset(large, '\n', sizeof(large) - 1);
    memcpy(large, text, sizeof(text) - 1);
    for (unsigned i = 0; i < 4; i++)
        assert_compiles(*state, large + i * 1000, &plain, "// -arch=sm_90 -O3\n");
}

static void mistakes_are_named(void **state)
{
    assert_gives(*state, ".mistake", -EINVAL, "ptxas error: line 3, mistake");
    assert_gives(*state, ".version 99.0", -EPROTONOSUPPORT,
                 "Unsupported .version 99.0; current version is '9.0'");
    assert_compiles(*state, text, &plain, "// -arch=sm_90 -O3\n");
}

static void a_crash_costs_one_image(void **state)
{
    assert_gives(*state, ".crash", -EBADMSG, "");
    assert_gives(*state, ".silence", -EBADMSG, "");
    assert_compiles(*state, text, &plain, "// -arch=sm_90 -O3\n");
}

static void nothing_else_can_be_reached(void **state)
{
    if (PROCESS_HAS_SANITIZER)
        skip();
    assert_compiles(*state, ".escape", &plain, "// -arch=sm_90 -O3\n");
}

static void a_library_that_is_none(void **state)
{
    struct ptx_compiler *compiler;
    char why[IMAGE_PROCESS_WHY] = "";

    (void)state;
    assert_int_not_equal(ptx_compiler_start("/nonexistent", why, sizeof(why), &compiler), 0);
    assert_non_null(strstr(why, "/nonexistent"));
    assert_int_not_equal(ptx_compiler_start("libc.so.6", why, sizeof(why), &compiler), 0);
    assert_non_null(strstr(why, "nvJitLinkCreate"));
}

/* ---- which images ---- */

struct container {
    struct image_container header;
    struct image_entry_header ptx;
    char text[sizeof(text)];
    struct image_entry_header code;
    char elf[16];
} __attribute__((packed));

static const struct container both = {
    .header = {.magic = IMAGE_CONTAINER_MAGIC,
               .version = 1,
               .header_size = sizeof(struct image_container),
               .size = sizeof(struct container) - sizeof(struct image_container)},
    .ptx = {.kind = IMAGE_PTX,
            .version_major = 1,
            .header_size = sizeof(struct image_entry_header),
            .payload_size = sizeof(text),
            .sm = 80},
    .text = ".version 8.0\n.target sm_80\n.address_size 64\n",
    .code = {.kind = IMAGE_ELF,
             .version_major = 1,
             .header_size = sizeof(struct image_entry_header),
             .payload_size = 16,
             .sm = 80},
};

static void only_images_without_code_are_compiled(void **state)
{
    struct ptx_compiled compiled;
    const struct image_source source = {.fd = -1, .bytes = &both, .size = sizeof(both)};

    assert_true(ptx_compiler_is_needed(text, strlen(text), SM));
    assert_false(ptx_compiler_is_needed("\x7f"
                                        "ELF",
                                        4, SM));
    assert_false(ptx_compiler_is_needed(&both, sizeof(both), 86));
    assert_true(ptx_compiler_is_needed(&both, sizeof(both), SM));
    assert_false(ptx_compiler_is_needed(&both, sizeof(both), 75));
    assert_int_equal(ptx_compiler_compile(*state, &source, &plain, &compiled), 0);
    assert_non_null(strstr(compiled.code, ".address_size 64"));
    ptx_compiled_fini(&compiled);
}

/* ---- NVIDIA's ---- */

static void nvidias_library_makes_code(void **state)
{
    struct ptx_compiled compiled;

    (void)state;
    if (access(NVIDIA, R_OK) || PROCESS_HAS_SANITIZER)
        skip();
    struct ptx_compiler *compiler = start(NVIDIA);
    assert_int_equal(compile(compiler, text, &plain, &compiled), 0);
    assert_memory_equal(compiled.code,
                        "\x7f"
                        "ELF",
                        4);
    ptx_compiled_fini(&compiled);
    assert_int_equal(compile(compiler, ".version 8.0\n.target sm_80\nwrong\n", &plain, &compiled),
                     -EINVAL);
    assert_non_null(strstr(compiled.log, "line 3"));
    ptx_compiled_fini(&compiled);
    assert_int_equal(compile(compiler, ".version 99.0\n.target sm_80\n", &plain, &compiled),
                     -EPROTONOSUPPORT);
    ptx_compiled_fini(&compiled);
    ptx_compiler_stop(compiler);
}

#define WITH_COMPILER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_COMPILER(code_comes_back),
        WITH_COMPILER(options_arrive),
        WITH_COMPILER(specific_architectures_keep_their_letter),
        WITH_COMPILER(a_large_text_comes_back),
        WITH_COMPILER(mistakes_are_named),
        WITH_COMPILER(a_crash_costs_one_image),
        WITH_COMPILER(nothing_else_can_be_reached),
        WITH_COMPILER(only_images_without_code_are_compiled),
        cmocka_unit_test(a_library_that_is_none),
        cmocka_unit_test(nvidias_library_makes_code),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
