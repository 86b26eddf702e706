/* SPDX-License-Identifier: Apache-2.0 */
/* The strings of an image, among them the formats of printf: in machine code and in PTX. */
#include "image_strings.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

/* The strings with a '|' behind each; "-" when they cannot be known. */
static const char *texts_in(enum image_kind kind, const void *bytes, size_t size)
{
    const struct image_part part = {.kind = kind, .bytes = bytes, .size = size};
    struct image_strings strings = {0};
    static char found[256];
    bool complete = image_part_strings(&part, &strings);

    assert_true(strings.size < sizeof(found));
    for (size_t i = 0; i < strings.size; i++)
        found[i] = strings.bytes[i] ? strings.bytes[i] : '|';
    found[strings.size] = '\0';
    image_strings_fini(&strings);
    return complete ? found : "-";
}

static const char *in_text(const char *text)
{
    return texts_in(IMAGE_PTX, text, strlen(text));
}

static void test_arrays_of_ptx(void **state)
{
    assert_string_equal(in_text(".global .align 1 .b8 $str[5] = {104, 105, 37, 100, 10};"),
                        "hi%d\n|");
    assert_string_equal(in_text(".global .align 1 .b8 $str[3]={104,105 , 0};"), "hi|");
    assert_string_equal(in_text(".global .b8 a[1] = {104};.const .b8 b[] = {105, 0, 0};"), "h|i|");
    assert_string_equal(in_text(".global .align 1 .b8 a[4]; .global .b8 b[2] = {104, 0};"), "h|");
}

static void test_variables_of_ptx_without_text(void **state)
{
    assert_string_equal(in_text(".global .b8 table[4] = {1, 0, 2, 0};"), "");
    assert_string_equal(in_text(".global .b8 empty[2] = {0, 0};"), "");
    assert_string_equal(in_text(".global .b8 wide[1] = {300};"), "");
    assert_string_equal(in_text(".global .b8 names[2] = {name, 0};"), "");
    assert_string_equal(in_text(".global .b8 cut[3] = {104, 105"), "");
    assert_string_equal(in_text(".param .b8 "), "");
}

static void test_too_many_strings(void **state)
{
    static const char one[] = ".global .b8 a[4] = {104, 105, 104, 105};\n";
    size_t count = IMAGE_STRINGS_MAX / 5 + 1, size = count * (sizeof(one) - 1);
    char *text = malloc(size + 1);

    for (size_t i = 0; i < count; i++)
        memcpy(text + i * (sizeof(one) - 1), one, sizeof(one));
    const struct image_part part = {.kind = IMAGE_PTX, .bytes = text, .size = size};
    struct image_strings strings = {0};
    assert_false(image_part_strings(&part, &strings));
    image_strings_fini(&strings);
    free(text);
}

/* ---- machine code ---- */

#define DATA "\1\0\2\0hi %d\n\0tail"

struct code {
    Elf64_Ehdr header;
    Elf64_Shdr sections[5];
    Elf64_Sym symbols[5];
    char names[16];
    char data[sizeof(DATA)];
};

static Elf64_Sym object(uint16_t where, uint64_t at, uint64_t size)
{
    return (Elf64_Sym){.st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT),
                       .st_shndx = where,
                       .st_value = at,
                       .st_size = size};
}

static Elf64_Shdr section(uint32_t type, uint64_t offset, uint64_t size)
{
    return (Elf64_Shdr){.sh_type = type, .sh_offset = offset, .sh_size = size};
}

static struct code make_code(void)
{
    struct code code = {.header = {.e_shoff = offsetof(struct code, sections),
                                   .e_shentsize = sizeof(Elf64_Shdr),
                                   .e_shnum = 5,
                                   .e_shstrndx = 1},
                        .data = DATA};

    memcpy(code.header.e_ident, ELFMAG, SELFMAG);
    code.header.e_ident[EI_CLASS] = ELFCLASS64;
    code.sections[1] = section(SHT_STRTAB, offsetof(struct code, names), sizeof(code.names));
    code.sections[2] = section(SHT_SYMTAB, offsetof(struct code, symbols), sizeof(code.symbols));
    code.sections[2].sh_link = 1;
    code.sections[3] = section(SHT_PROGBITS, offsetof(struct code, data), sizeof(code.data));
    code.sections[4] = section(SHT_NOBITS, 0, 400);
    code.symbols[1] = object(3, 0, 4);  /* numbers */
    code.symbols[2] = object(3, 4, 7);  /* a text */
    code.symbols[3] = object(4, 0, 40); /* without contents */
    return code;
}

static const char *in_code(const struct code *code)
{
    return texts_in(IMAGE_ELF, code, sizeof(*code));
}

static void test_objects_of_code(void **state)
{
    struct code code = make_code();

    assert_string_equal(in_code(&code), "hi %d\n|");
    code.symbols[4] = object(3, 7, 4);
    assert_string_equal(in_code(&code), "hi %d\n|%d\n|");
}

static void test_objects_outside_their_section(void **state)
{
    struct code code = make_code();

    code.symbols[2] = object(3, 4, 700);
    code.symbols[4] = object(3, UINT64_MAX, 7);
    assert_string_equal(in_code(&code), "");
    code.symbols[2] = object(77, 4, 7);
    assert_string_equal(in_code(&code), "");
    code.sections[2].sh_type = SHT_PROGBITS;
    assert_string_equal(in_code(&code), "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays_of_ptx),
        cmocka_unit_test(test_variables_of_ptx_without_text),
        cmocka_unit_test(test_too_many_strings),
        cmocka_unit_test(test_objects_of_code),
        cmocka_unit_test(test_objects_outside_their_section),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
