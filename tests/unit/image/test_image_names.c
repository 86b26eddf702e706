/* SPDX-License-Identifier: Apache-2.0 */
/* Which variables an image has, by name. */
#include "unit.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "image_facts.h"

#define PTX ".version 8.0\n.target sm_90\n.address_size 64\n"

/* "a b c": the names in order, or "-" when they cannot be known. */
static const char *names_in(const void *bytes, size_t size)
{
    static char text[512];
    struct image_facts facts;

    image_facts_read(bytes, size, 90, &facts);
    if (!facts.has_names)
        return "-";
    struct image_names names = facts.names;
    text[0] = '\0';
    for (uint32_t i = 0; i < names.count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
                 names.names[i].name);
    image_names_fini(&names);
    return text;
}

static const char *in_text(const char *text)
{
    return names_in(text, strlen(text));
}

static void declarations_in_text(void **state)
{
    (void)state;
    assert_string_equal(in_text(PTX ".visible .global .align 4 .u32 counter = 5;\n"), "counter");
    assert_string_equal(
        in_text(PTX ".global .align 4 .b8 z[4000];\n.const .align 4 .b8 t[2] = {1, 2};\n"), "t z");
    assert_string_equal(in_text(PTX ".global .align 1 .b8 $str$1[6] = {104};\n"), "$str$1");
    assert_string_equal(in_text(PTX ".global .u64 p = generic(q);\n.global .u32 q;\n"
                                    ".entry k() {\nld.global.u32 %r1, [q];\n"
                                    "cvta.to.global.u64 %rd2, %rd1;\n}\n"),
                        "p q");
    assert_string_equal(in_text(PTX ".const .v2 .f32 m[2][3];\n"), "m");
    assert_string_equal(in_text(PTX ".global .u32 a, b;\n"), "a b");
}

/* Of all variables; IMAGE_BYTES_UNKNOWN when that cannot be known. */
static uint64_t size_in(const char *text)
{
    struct image_facts facts;

    image_facts_read(text, strlen(text), 90, &facts);
    image_facts_fini(&facts);
    return facts.variable_bytes;
}

static void sizes_in_text(void **state)
{
    (void)state;
    assert_int_equal(size_in(PTX ".visible .global .align 4 .u32 counter = 5;\n"), 4);
    assert_int_equal(size_in(PTX ".global .align 64 .b8 z[50331648];\n"), 50331648);
    assert_int_equal(size_in(PTX ".const .v2 .f32 m[2][ 3 ];\n"), 48);
    assert_int_equal(size_in(PTX ".global .f64 d;\n"), 8);
    assert_int_equal(size_in(PTX ".global .f16x2 h;\n"), 4);
    assert_int_equal(size_in(PTX ".extern .global .b8 e[];\n"), 0);
    assert_int_equal(size_in(PTX ".entry k() {\nld.global.u32 %r1, [%rd1];\n}\n"), 0);
}

/* As the driver reads them, however they are written. */
static void sizes_that_are_not_plain(void **state)
{
    (void)state;
    assert_int_equal(size_in(PTX ".global .b8 a[5000*10000];\n"), 50000000);
    assert_int_equal(size_in(PTX ".global .b8 a[0x2faf080];\n"), 50000000);
    assert_int_equal(size_in(PTX ".global .b8 a[/* 4 */ 50000000 // 4\n];\n"), 50000000);
    assert_int_equal(size_in(PTX ".global .b8 a[4], b[50000000];\n"), 50000004);
    assert_int_equal(size_in(PTX ".global /* .u8 */ .u32 a [10] [10] = {1, 2};\n"), 400);
    assert_int_equal(size_in(PTX ".global .align 4 .b8 a[] = {1, 2, 3};\n"), 4);
    assert_int_equal(size_in(PTX ".global .align 4096 .b8 a, b;\n"), 8192);
    assert_int_equal(size_in(PTX ".visible.global .b8 a[50000000];\n"), 50000000);
    assert_int_equal(size_in(PTX ".global .attribute(.managed) .b8 a[50000000];\n"), 50000000);
    assert_int_equal(size_in(PTX ".pragma \"nounroll\"; .global .b8 a[50000000];\n"), 50000000);
    assert_int_equal(size_in(PTX ".file 1 \"a.cu\", 5, 7 .global .b8 a[50000000];\n"), 50000000);
    assert_int_equal(size_in(PTX ".func f() {\nwhat.is.this {%r1, 5};\n"
                                 "L: .global .b8 a[50000000];\n}\n"),
                     50000000);
}

static void sizes_that_cannot_be_known(void **state)
{
    (void)state;
    assert_int_equal(size_in(PTX ".global .b8 e[N];\n"), IMAGE_BYTES_UNKNOWN);
    assert_int_equal(size_in(PTX ".global .what e;\n"), IMAGE_BYTES_UNKNOWN);
    assert_int_equal(size_in(PTX ".global .b64 e[999999999999999][999999999999999];\n"),
                     IMAGE_BYTES_UNKNOWN);
    assert_int_equal(size_in(PTX ".global .b8 a[4]; .entry k() {\n"), IMAGE_BYTES_UNKNOWN);
}

/* Rather no names than too few. */
static void text_that_is_not_understood(void **state)
{
    (void)state;
    assert_string_equal(in_text(PTX ".global .attribute(.managed) .align 4 .u32 m = 9;\n"), "-");
    assert_string_equal(in_text(PTX ".global .u32 a;\n.global .u32 a;\n"), "-");
    assert_string_equal(in_text(PTX ".global .texref t;\n"), "-");
    assert_string_equal(in_text(PTX ".tex .u32 t;\n.global .u32 a;\n"), "-");
    assert_string_equal(in_text(PTX ".global .u32 a[3"), "-");
    assert_string_equal(in_text(PTX ".global"), "-");
    assert_string_equal(in_text(PTX ".global .align"), "-");
    assert_string_equal(in_text(PTX ".entry k() {}\n"), "-");
}

/* ---- containers ---- */

static size_t put_empty_container(unsigned char *bytes)
{
    const struct image_container header = {
        .magic = IMAGE_CONTAINER_MAGIC, .version = 1, .header_size = sizeof(header)};

    memcpy(bytes, &header, sizeof(header));
    return sizeof(header);
}

/* Adds a part to a container that ends at `end`, and returns the new end. */
static size_t add_part(unsigned char *bytes, size_t end, struct image_entry_header entry,
                       const void *payload, size_t size)
{
    uint64_t length = (size + 8) / 8 * 8, all;

    entry.header_size = sizeof(entry);
    entry.payload_size = length;
    memcpy(bytes + end, &entry, sizeof(entry));
    memset(bytes + end + sizeof(entry), 0, length);
    memcpy(bytes + end + sizeof(entry), payload, size);
    end += sizeof(entry) + length;
    all = end - sizeof(struct image_container);
    memcpy(bytes + offsetof(struct image_container, size), &all, sizeof(all));
    return end;
}

static size_t add_text(unsigned char *bytes, size_t end, unsigned sm, const char *text)
{
    const struct image_entry_header entry = {.kind = IMAGE_PTX, .sm = sm};

    return add_part(bytes, end, entry, text, strlen(text));
}

/* What is linked is the driver's choice. */
static void a_bundle_is_not_understood(void **state)
{
    unsigned char bytes[512];
    size_t size = add_text(bytes, put_empty_container(bytes), 75, PTX ".global .u32 a;\n");
    struct image_facts facts;

    (void)state;
    assert_string_equal(names_in(bytes, size), "a");
    size = put_empty_container(bytes);
    size += add_text(bytes + size, put_empty_container(bytes + size), 75, PTX ".global .u32 a;\n");
    assert_string_equal(names_in(bytes, size), "-");
    image_facts_read(bytes, size, 90, &facts);
    assert_true(facts.has_variables);
    image_facts_fini(&facts);
}

/* ---- machine code ---- */

/* Sections by number: nothing, names, strings, symbols, .nv.global.init, .nv.global, one more. */
#define SECTION_NAMES                                                                           \
    "\0.shstrtab\0.strtab\0.symtab\0.nv.global.init\0.nv.global\0.text.k\0.nv.other\0.rela.nv." \
    "constant2.k\0.rela.nv.global.init\0"
#define STRINGS "\0a\0b\0"

struct stored_image {
    Elf64_Ehdr header;
    Elf64_Shdr sections[7];
    Elf64_Sym symbols[4];
    Elf64_Rela relocation;
    char names[sizeof(SECTION_NAMES)];
    char strings[sizeof(STRINGS)];
};

static uint32_t name_at(const char *name)
{
    const char *names = SECTION_NAMES;

    return (uint32_t)((const char *)memmem(names, sizeof(SECTION_NAMES), name, strlen(name) + 1) -
                      names);
}

static Elf64_Shdr section(const char *name, uint32_t type, uint64_t offset, uint64_t size)
{
    return (Elf64_Shdr){.sh_name = name_at(name),
                        .sh_type = type,
                        .sh_offset = offset,
                        .sh_size = size,
                        .sh_addralign = 4};
}

static Elf64_Sym variable(uint32_t name, uint16_t where, uint64_t size)
{
    return (Elf64_Sym){.st_name = name,
                       .st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT),
                       .st_shndx = where,
                       .st_size = size};
}

static struct stored_image make_code(void)
{
    struct stored_image code = {
        .header = {.e_shoff = offsetof(struct stored_image, sections),
                   .e_shentsize = sizeof(Elf64_Shdr),
                   .e_shnum = 7,
                   .e_shstrndx = 1},
        .names = SECTION_NAMES,
        .strings = STRINGS,
    };

    memcpy(code.header.e_ident, ELFMAG, SELFMAG);
    code.header.e_ident[EI_CLASS] = ELFCLASS64;
    code.sections[1] =
        section(".shstrtab", SHT_STRTAB, offsetof(struct stored_image, names), sizeof(code.names));
    code.sections[2] = section(".strtab", SHT_STRTAB, offsetof(struct stored_image, strings),
                               sizeof(code.strings));
    code.sections[3] = section(".symtab", SHT_SYMTAB, offsetof(struct stored_image, symbols),
                               sizeof(code.symbols));
    code.sections[3].sh_link = 2;
    code.sections[4] = section(".nv.global.init", SHT_PROGBITS, 0, 8);
    code.sections[5] = section(".nv.global", SHT_NOBITS, 0, 400);
    code.sections[6] = section(".text.k", SHT_PROGBITS, 0, 8);
    code.symbols[1] = variable(1, 4, 7);
    code.symbols[2] = variable(3, 5, 400);
    return code;
}

static const char *in_code(const struct stored_image *code)
{
    return names_in(code, sizeof(*code));
}

static void symbols_of_code(void **state)
{
    struct stored_image code = make_code();

    (void)state;
    assert_string_equal(in_code(&code), "a b");
    code.sections[6].sh_name = name_at(".rela.nv.constant2.k");
    assert_string_equal(in_code(&code), "a b");
    code.symbols[3] = variable(0, SHN_UNDEF, 4); /* of no interest */
    assert_string_equal(in_code(&code), "a b");
}

/* Names of variables into which the load writes addresses. */
static const char *relocated_in(const void *bytes, size_t size)
{
    static char text[64];
    struct image_facts facts;

    text[0] = '\0';
    image_facts_read(bytes, size, 90, &facts);
    for (uint32_t i = 0; i < facts.names.count; i++)
        if (facts.names.names[i].relocated)
            strcat(text, facts.names.names[i].name);
    image_facts_fini(&facts);
    return text;
}

static void addresses_in_variables(void **state)
{
    const char *ptx = PTX ".global .u32 q;\n.global .u64 p[2] = {0xff, generic(q)};\n"
                          ".global .u32 r[2] = {1, -2};\n.global .u64 s[] = {q};\n";
    struct stored_image code = make_code();

    (void)state;
    assert_string_equal(relocated_in(ptx, strlen(ptx)), "ps");
    assert_string_equal(relocated_in(&code, sizeof(code)), "");
    code.sections[6] = section(".rela.nv.global.init", SHT_RELA,
                               offsetof(struct stored_image, relocation), sizeof(Elf64_Rela));
    code.sections[6].sh_info = 4;
    assert_string_equal(relocated_in(&code, sizeof(code)), "a");
    code.relocation.r_offset = 7; /* behind it */
    assert_string_equal(relocated_in(&code, sizeof(code)), "");
}

static void code_that_is_not_understood(void **state)
{
    struct stored_image good = make_code(), code = good;

    (void)state;
    code.symbols[1].st_other = 4; /* managed */
    assert_string_equal(in_code(&code), "-");
    code = good;
    code.symbols[1].st_size = 4; /* four bytes without a name */
    assert_string_equal(in_code(&code), "-");
    code = good;
    code.symbols[2].st_name = 1; /* twice the same */
    assert_string_equal(in_code(&code), "-");
    code = good;
    code.symbols[2].st_name = 1000;
    assert_string_equal(in_code(&code), "-");
    code = good;
    code.sections[6].sh_name = name_at(".nv.other");
    assert_string_equal(in_code(&code), "-");
    code = good;
    code.sections[3].sh_link = 77;
    assert_string_equal(in_code(&code), "-");
    code = good;
    code.sections[3].sh_size = 1 << 20;
    assert_string_equal(in_code(&code), "-");
    code = good;
    code.sections[6].sh_name = 5000;
    assert_string_equal(in_code(&code), "-");
    code = good;
    code.header.e_shnum = 60000;
    assert_string_equal(in_code(&code), "-");
}

static void code_cut_anywhere(void **state)
{
    struct stored_image code = make_code();
    size_t whole = offsetof(struct stored_image, strings) + sizeof(code.strings);

    (void)state;
    for (size_t size = 4; size < whole; size++)
        assert_string_equal(names_in(&code, size), "-");
}

/* ---- parts for other devices ---- */

static struct image_facts facts_of(const unsigned char *bytes, size_t size)
{
    struct image_facts facts;

    image_facts_read(bytes, size, 90, &facts);
    image_facts_fini(&facts);
    return facts;
}

/* The newest code that the device runs decides, whatever the others hold. */
static void only_what_the_device_gets_counts(void **state)
{
    static const char plain[] = PTX ".entry k() {}\n",
                      full[] = PTX ".global .u32 a;\n"
                                   ".func f() {\ncall vprintf; call malloc;\n}\n";
    struct stored_image code = make_code(), strange = code;
    const struct image_entry_header for_90 = {.kind = IMAGE_ELF, .sm = 90},
                                    for_100 = {.kind = IMAGE_ELF, .sm = 100};
    unsigned char bytes[8192];
    size_t size = add_text(bytes, put_empty_container(bytes), 75, full);
    struct image_facts facts;

    (void)state;
    size = add_text(bytes, size, 120, full);
    facts = facts_of(bytes, size);
    assert_true(facts.prints && facts.allocates && facts.has_names);
    size = add_text(bytes, size, 80, plain);
    facts = facts_of(bytes, size);
    assert_false(facts.prints || facts.allocates || facts.has_variables || facts.has_names);
    strange.sections[6].sh_name = name_at(".nv.other");
    size = add_part(bytes, size, for_100, &strange, sizeof(strange));
    assert_false(facts_of(bytes, size).has_variables);
    size = add_part(bytes, size, for_90, &code, sizeof(code));
    assert_string_equal(names_in(bytes, size), "a b");
    size = add_part(bytes, size, for_90, &strange, sizeof(strange));
    facts = facts_of(bytes, size);
    assert_true(facts.has_variables && !facts.has_names);
}

/* Text for sm_80a is not for a device of 90. */
static void text_for_one_architecture_alone(void **state)
{
    const struct image_entry_header only_80 = {
        .kind = IMAGE_PTX, .sm = 80, .flags = IMAGE_ARCH_SPECIFIC};
    const char *text = PTX ".global .u32 b;\n";
    unsigned char bytes[1024];
    size_t size = add_text(bytes, put_empty_container(bytes), 75, PTX ".global .u32 a;\n");

    (void)state;
    size = add_part(bytes, size, only_80, text, strlen(text));
    assert_string_equal(names_in(bytes, size), "a");
}

/* A part that does not expand may hold anything, if the device gets it. */
static void a_broken_part_counts_if_the_device_gets_it(void **state)
{
    struct image_entry_header broken = {
        .kind = IMAGE_ELF, .sm = 100, .flags = IMAGE_ZSTD, .compressed_size = 8, .plain_size = 99};
    unsigned char bytes[1024];
    size_t size = add_text(bytes, put_empty_container(bytes), 75, PTX ".entry k() {}\n");

    (void)state;
    size = add_part(bytes, size, broken, "nonsense", 8);
    assert_false(facts_of(bytes, size).has_variables);
    broken.sm = 90;
    size = add_part(bytes, size, broken, "nonsense", 8);
    struct image_facts facts = facts_of(bytes, size);
    assert_true(facts.has_variables && facts.prints && facts.allocates && !facts.has_names);
}

/* The section is there, and nothing is in it. */
static void sections_of_no_variables(void **state)
{
    struct stored_image code = make_code();

    (void)state;
    code.sections[4].sh_size = code.sections[5].sh_size = 0;
    code.symbols[1] = code.symbols[2] = (Elf64_Sym){0};
    struct image_facts facts = facts_of((const unsigned char *)&code, sizeof(code));
    assert_false(facts.has_variables || facts.has_names);
}

static bool are_constant(const char *name, uint64_t size, bool constant)
{
    struct image_names names = {0};

    assert_true(image_names_add(&names, "$str$3", 6, 10, false));
    assert_true(image_names_add(&names, name, strlen(name), size, constant));
    bool answer = image_names_are_constant(&names);
    image_names_fini(&names);
    return answer;
}

static const char *first_variable(const char *name, uint64_t size, bool constant)
{
    static char found[32];
    struct image_names names = {0};

    assert_true(image_names_add(&names, "$str$3", 6, 10, false));
    assert_true(image_names_add(&names, name, strlen(name), size, constant));
    const char *first = image_names_first_variable(&names);
    snprintf(found, sizeof(found), "%s", first ? first : "");
    image_names_fini(&names);
    return first ? found : NULL;
}

static void variables_that_no_kernel_writes_to(void **state)
{
    struct image_names none = {0};

    (void)state;
    assert_true(image_names_are_constant(&none));
    assert_null(image_names_first_variable(&none));
    assert_null(first_variable("__unnamed_2", 4, false));
    assert_string_equal(first_variable("table", 16, true), "table"); /* the host writes it */
    assert_string_equal(first_variable("flag", 1, false), "flag");
    assert_null(first_variable("_ZZN4mine1kEvE5table", 16, true));
    assert_string_equal(first_variable("_ZZN4mine1kEvE5count", 4, false), "_ZZN4mine1kEvE5count");
    assert_true(are_constant("__unnamed_2", 4, false));
    assert_true(are_constant("__cudart_i2opi_f", 24, false));
    assert_true(are_constant("_ZN8INTERNAL4cuda3std3__45__cpo3endE", 1, false));
    assert_true(are_constant("_ZN8INTERNAL6thrust12placeholders2_1E", 0, false));
    assert_true(are_constant("table", 16, true));
    assert_false(are_constant("table", 16, false));
    assert_false(are_constant("flag", 1, false));
    assert_false(are_constant("strength", 4, false));
    assert_false(are_constant("_ZN4mine4flagE", 1, false));
    assert_false(are_constant("_ZN4cuda3std5countE", 4, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(declarations_in_text),
        cmocka_unit_test(sizes_in_text),
        cmocka_unit_test(sizes_that_are_not_plain),
        cmocka_unit_test(sizes_that_cannot_be_known),
        cmocka_unit_test(text_that_is_not_understood),
        cmocka_unit_test(a_bundle_is_not_understood),
        cmocka_unit_test(symbols_of_code),
        cmocka_unit_test(addresses_in_variables),
        cmocka_unit_test(code_that_is_not_understood),
        cmocka_unit_test(code_cut_anywhere),
        cmocka_unit_test(only_what_the_device_gets_counts),
        cmocka_unit_test(text_for_one_architecture_alone),
        cmocka_unit_test(a_broken_part_counts_if_the_device_gets_it),
        cmocka_unit_test(sections_of_no_variables),
        cmocka_unit_test(variables_that_no_kernel_writes_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
