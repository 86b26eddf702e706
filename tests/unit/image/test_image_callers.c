/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels print or allocate: by themselves, or through functions that they call. */
#include "image_callers.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

/* Each kernel with what it does, in the order of the part; "-" when it cannot be known. */
static const char *callers_in(enum image_kind kind, const void *bytes, size_t size)
{
    const struct image_part part = {.kind = kind, .bytes = bytes, .size = size};
    struct image_names callers = {0};
    static char text[256];
    bool complete = image_part_callers(&part, &callers);
    size_t at = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < callers.count; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s:%s%s%s ", callers.names[i].name,
                               callers.names[i].size & IMAGE_USES_PRINTF ? "p" : "",
                               callers.names[i].size & IMAGE_USES_MALLOC ? "m" : "",
                               callers.names[i].size & IMAGE_USES_UNKNOWN ? "?" : "");
    image_names_fini(&callers);
    return complete ? text : "-";
}

static const char *in_text(const char *text)
{
    return callers_in(IMAGE_PTX, text, strlen(text));
}

#define SYSTEM                                                                \
    ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n" \
    ".extern .func (.param .b64 r) malloc (.param .b64 a);\n"

static void test_kernels_of_ptx(void **state)
{
    assert_string_equal(in_text(SYSTEM ".visible .entry a() { call (r), vprintf, (x, y); }\n"
                                       ".visible .entry b(.param .u64 p) .maxntid 8 { ret; }\n"
                                       ".entry c() { { call (r), malloc, (x); } }\n"),
                        "a:p c:m ");
    assert_string_equal(in_text(SYSTEM ".entry vprintf_not() { ret; }"), "");
    assert_string_equal(in_text(SYSTEM), "");
    assert_string_equal(in_text(".entry cut() { call vprintf"), "cut:p ");
    assert_string_equal(in_text(".entry"), "");
    assert_string_equal(in_text(".entry a() { call (r), __cudaCDP2LaunchDeviceV2, (x, y); }"),
                        "a:? ");
    assert_string_equal(in_text(".entry a() { p: .callprototype _ (.param .b32 _); call %rd1; }"),
                        "a:? ");
}

static void test_functions_of_ptx(void **state)
{
    assert_string_equal(
        in_text(SYSTEM ".func (.param .b32 r) one(.param .b32 x);\n"
                       ".entry a() { call (r), one, (x); }\n"
                       ".entry b() { call (r), other, (x); }\n"
                       ".func (.param .b32 r) one(.param .b32 x) { call two; }\n"
                       ".func two() { call one; call (r), vprintf, (x, y); call malloc; }\n"
                       ".func other() { ret; }\n"),
        "a:pm ");
}

/* ---- machine code ---- */

#define NAMES "\0vprintf\0malloc\0kernel\0silent\0f"
#define SECTION_NAMES "\0.nv.callgraph"

struct call {
    uint32_t caller, callee;
};

struct code {
    Elf64_Ehdr header;
    Elf64_Shdr sections[5];
    Elf64_Sym symbols[6];
    struct call calls[5];
    char names[sizeof(NAMES)];
    char section_names[sizeof(SECTION_NAMES)];
};

enum { VPRINTF = 1, MALLOC, KERNEL, SILENT, FUNCTION };

static Elf64_Shdr section(uint32_t name, uint32_t type, uint64_t offset, uint64_t size)
{
    return (Elf64_Shdr){.sh_name = name, .sh_type = type, .sh_offset = offset, .sh_size = size};
}

static Elf64_Sym function(uint32_t name, uint16_t where, unsigned char other)
{
    return (Elf64_Sym){.st_name = name,
                       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                       .st_shndx = where,
                       .st_other = other};
}

static struct code make_code(void)
{
    struct code code = {.header = {.e_shoff = offsetof(struct code, sections),
                                   .e_shentsize = sizeof(Elf64_Shdr),
                                   .e_shnum = 5,
                                   .e_shstrndx = 1},
                        .names = NAMES,
                        .section_names = SECTION_NAMES,
                        .calls = {{0, UINT32_MAX}, {KERNEL, FUNCTION}, {FUNCTION, VPRINTF}}};

    memcpy(code.header.e_ident, ELFMAG, SELFMAG);
    code.header.e_ident[EI_CLASS] = ELFCLASS64;
    code.sections[1] =
        section(0, SHT_STRTAB, offsetof(struct code, section_names), sizeof(code.section_names));
    code.sections[2] = section(0, SHT_SYMTAB, offsetof(struct code, symbols), sizeof(code.symbols));
    code.sections[2].sh_link = 3;
    code.sections[3] = section(0, SHT_STRTAB, offsetof(struct code, names), sizeof(code.names));
    code.sections[4] = section(1, SHT_LOPROC + 1, offsetof(struct code, calls), sizeof(code.calls));
    code.symbols[VPRINTF] = function(1, SHN_UNDEF, 0);
    code.symbols[MALLOC] = function(9, SHN_UNDEF, 0);
    code.symbols[KERNEL] = function(16, 4, 0x10);
    code.symbols[SILENT] = function(23, 4, 0x10);
    code.symbols[FUNCTION] = function(30, 4, 0);
    return code;
}

static const char *in_code(const struct code *code)
{
    return callers_in(IMAGE_ELF, code, sizeof(*code));
}

static void test_kernels_of_code(void **state)
{
    struct code code = make_code();

    assert_string_equal(in_code(&code), "kernel:p ");
    code.calls[3] = (struct call){SILENT, KERNEL};
    code.calls[4] = (struct call){KERNEL, MALLOC};
    assert_string_equal(in_code(&code), "kernel:pm silent:pm ");
    code.calls[3] = (struct call){77, VPRINTF};
    code.calls[4] = (struct call){KERNEL, 77};
    assert_string_equal(in_code(&code), "kernel:p ");
}

/* The lists of what is not called by name. */
static void test_other_calls_of_code(void **state)
{
    struct code code = make_code();

    code.calls[3] = (struct call){0, UINT32_MAX - 1}; /* functions whose address is taken */
    code.calls[4] = (struct call){SILENT, VPRINTF};
    assert_string_equal(in_code(&code), "kernel:p ");
    code.calls[3].callee = UINT32_MAX - 2;
    assert_string_equal(in_code(&code), "kernel:p silent:? ");
    code.calls[3].callee = UINT32_MAX - 3;
    code.calls[4].callee = KERNEL;
    assert_string_equal(in_code(&code), "kernel:p silent:p ");
}

static void test_code_that_says_nothing(void **state)
{
    struct code code = make_code();

    code.sections[4].sh_size = UINT64_MAX;
    assert_string_equal(in_code(&code), "-");
    code.sections[4].sh_name = 0;
    assert_string_equal(in_code(&code), "-");
}

static bool has_pointers(enum image_kind kind, const void *bytes, size_t size)
{
    const struct image_part part = {.kind = kind, .bytes = bytes, .size = size};

    return image_part_calls_pointers(&part);
}

static bool text_has_pointers(const char *text)
{
    return has_pointers(IMAGE_PTX, text, strlen(text));
}

static void test_pointers_to_functions(void **state)
{
    struct code code = make_code();

    assert_false(text_has_pointers(".func f() { ret; } .entry a() { call f; }"));
    assert_true(
        text_has_pointers(".entry a() { p: .callprototype _ (.param .b32 _); call %rd1; }"));
    assert_true(text_has_pointers(".entry a() { call (r), __cudaCDP2LaunchDeviceV2, (x, y); }"));
    assert_false(has_pointers(IMAGE_ELF, &code, sizeof(code)));
    code.calls[3] = (struct call){0, UINT32_MAX - 2};
    assert_false(has_pointers(IMAGE_ELF, &code, sizeof(code)));
    code.calls[4] = (struct call){SILENT, 1};
    assert_true(has_pointers(IMAGE_ELF, &code, sizeof(code)));
}

/* Older code has no list of calls. */
static void test_relocated_functions(void **state)
{
    struct code code = make_code();
    const Elf64_Rel entry = {.r_info = ELF64_R_INFO(KERNEL, 1)};

    memcpy(code.calls, &entry, sizeof(entry));
    code.sections[4] = section(0, SHT_REL, offsetof(struct code, calls), sizeof(entry));
    assert_false(has_pointers(IMAGE_ELF, &code, sizeof(code)));
    code.calls[1].callee = FUNCTION; /* the upper half of r_info */
    assert_true(has_pointers(IMAGE_ELF, &code, sizeof(code)));
    code.calls[1].callee = 77;
    assert_true(has_pointers(IMAGE_ELF, &code, sizeof(code)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_of_ptx),         cmocka_unit_test(test_functions_of_ptx),
        cmocka_unit_test(test_kernels_of_code),        cmocka_unit_test(test_other_calls_of_code),
        cmocka_unit_test(test_code_that_says_nothing), cmocka_unit_test(test_pointers_to_functions),
        cmocka_unit_test(test_relocated_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
