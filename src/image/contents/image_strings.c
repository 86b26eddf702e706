/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In machine code a string is an object of the symbol table. In PTX it is an array of bytes,
 * declared with its values: ".global .align 1 .b8 $str[3] = {104, 105, 10};".
 */
#include "image_strings.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "image_symbols.h"

static bool reserve_bytes(struct image_strings *strings, size_t size)
{
    size_t capacity = strings->capacity ? strings->capacity : 1024;

    while (capacity < size)
        capacity *= 2;
    if (capacity == strings->capacity)
        return true;
    char *bytes = realloc(strings->bytes, capacity);
    if (!bytes)
        return false;
    strings->bytes = bytes;
    strings->capacity = capacity;
    return true;
}

bool image_strings_add(struct image_strings *strings, const char *text, size_t length)
{
    if (length >= IMAGE_STRINGS_MAX - strings->size ||
        !reserve_bytes(strings, strings->size + length + 1))
        return false;
    memcpy(strings->bytes + strings->size, text, length);
    strings->bytes[strings->size + length] = '\0';
    strings->size += length + 1;
    return true;
}

void image_strings_fini(struct image_strings *strings)
{
    free(strings->bytes);
    *strings = (struct image_strings){0};
}

/* ---- machine code ---- */

/* NULL when the symbol has no bytes in the file. */
static const char *bytes_of(const struct image_elf *elf, const Elf64_Sym *symbol)
{
    Elf64_Shdr section;

    if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_shndx >= elf->header.e_shnum ||
        !image_elf_section(elf, symbol->st_shndx, &section) || section.sh_type != SHT_PROGBITS ||
        !image_elf_holds(elf, &section) || symbol->st_value > section.sh_size ||
        symbol->st_size > section.sh_size - symbol->st_value)
        return NULL;
    return (const char *)elf->bytes + section.sh_offset + symbol->st_value;
}

static bool code_strings(const struct image_part *part, struct image_strings *strings)
{
    struct image_symbols symbols;
    struct image_elf elf;

    if (!image_elf_open(part->bytes, part->size, &elf) || !image_symbols_open(&elf, &symbols))
        return false;
    for (uint64_t i = 0; i < symbols.count; i++) {
        Elf64_Sym symbol = image_symbol_at(&symbols, i);
        const char *bytes = bytes_of(&elf, &symbol);

        if (bytes && symbol.st_size > 1 && strnlen(bytes, symbol.st_size) == symbol.st_size - 1 &&
            !image_strings_add(strings, bytes, symbol.st_size - 1))
            return false;
    }
    return true;
}

/* ---- PTX ---- */

struct cursor {
    const char *next, *end;
};

static void skip_blanks(struct cursor *cursor)
{
    while (cursor->next < cursor->end && isspace((unsigned char)*cursor->next))
        cursor->next++;
}

static bool take_char(struct cursor *cursor, char c)
{
    skip_blanks(cursor);
    if (cursor->next == cursor->end || *cursor->next != c)
        return false;
    cursor->next++;
    return true;
}

/* Decimal, as compilers write it. */
static bool take_byte(struct cursor *cursor, char *ret_byte)
{
    unsigned value = 0, digits = 0;

    skip_blanks(cursor);
    for (; cursor->next < cursor->end && isdigit((unsigned char)*cursor->next) && digits < 4;
         digits++)
        value = 10 * value + (unsigned)(*cursor->next++ - '0');
    *ret_byte = (char)value;
    return digits > 0 && value < 256;
}

#define NAME_MAX_SIZE 65536

/* Reads up to the array's values. */
static bool take_head(struct cursor *cursor)
{
    size_t left = (size_t)(cursor->end - cursor->next);
    const char *open = memchr(cursor->next, '[', left < NAME_MAX_SIZE ? left : NAME_MAX_SIZE);

    if (!open || memchr(cursor->next, ';', (size_t)(open - cursor->next)))
        return false;
    cursor->next = open + 1;
    while (cursor->next < cursor->end && isdigit((unsigned char)*cursor->next))
        cursor->next++;
    return take_char(cursor, ']') && take_char(cursor, '=') && take_char(cursor, '{');
}

/* NULs may end the string; the last need not be written. False when the array is no string. */
static bool take_values(struct cursor *cursor, struct image_strings *text)
{
    bool ended = false;
    char byte;

    do {
        if (!take_byte(cursor, &byte) || (ended && byte) || text->size == IMAGE_STRINGS_MAX / 2 ||
            !reserve_bytes(text, text->size + 1))
            return false;
        ended = !byte;
        if (byte)
            text->bytes[text->size++] = byte;
    } while (take_char(cursor, ','));
    return text->size > 0 && take_char(cursor, '}');
}

static bool add_array(struct cursor *cursor, struct image_strings *strings)
{
    struct image_strings text = {0};
    bool added = !take_head(cursor) || !take_values(cursor, &text) ||
                 image_strings_add(strings, text.bytes, text.size);

    image_strings_fini(&text);
    return added;
}

static bool ptx_strings(const struct image_part *part, struct image_strings *strings)
{
    static const char type[] = ".b8 ";
    struct cursor cursor = {part->bytes, (const char *)part->bytes + part->size};

    for (;;) {
        const char *found =
            memmem(cursor.next, (size_t)(cursor.end - cursor.next), type, strlen(type));

        if (!found)
            return true;
        cursor.next = found + strlen(type);
        if (!add_array(&cursor, strings))
            return false;
    }
}

bool image_part_strings(const struct image_part *part, struct image_strings *strings)
{
    return part->kind == IMAGE_ELF ? code_strings(part, strings) : ptx_strings(part, strings);
}
