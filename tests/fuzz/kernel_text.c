/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text, random numbers and operands of a generated kernel.
 */
#include "kernel_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_rows.h"

void say(struct builder *builder, const char *format, ...)
{
    for (;;) {
        size_t left = builder->capacity - builder->length;
        va_list args;
        va_start(args, format);
        int needed = vsnprintf(builder->text ? builder->text + builder->length : NULL,
                               builder->text ? left : 0, format, args);
        va_end(args);
        if (builder->text && (size_t)needed + 2 <= left) {
            builder->length += (size_t)needed;
            memcpy(builder->text + builder->length, "\n", 2);
            builder->length++;
            return;
        }
        builder->capacity = 2 * builder->capacity + (size_t)needed + 4096;
        char *larger = realloc(builder->text, builder->capacity);
        if (!larger) {
            fprintf(stderr, "kernels: out of memory\n");
            exit(1);
        }
        builder->text = larger;
    }
}

uint64_t draw(struct builder *builder)
{
    builder->random += 0x9e3779b97f4a7c15;
    return mix_bits(builder->random);
}

unsigned pick(struct builder *builder, unsigned count)
{
    return (unsigned)(draw(builder) >> 32) % count;
}

bool chance(struct builder *builder, unsigned one_in)
{
    return pick(builder, one_in) == 0;
}

void statement_begin(struct builder *builder)
{
    builder->random = mix_bits(builder->seed * 0x2545f4914f6cdd1d + ++builder->statements);
}

const char *text_of(const char *format, ...)
{
    static char texts[12][96];
    static unsigned next;
    char *text = texts[next++ % 12];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(texts[0]), format, args);
    va_end(args);
    return text;
}

const char *narrow(struct builder *builder)
{
    return text_of("%%h%u", pick(builder, NARROW_REGISTERS));
}

const char *any_register(struct builder *builder)
{
    return text_of("%%r%u", pick(builder, REGISTERS));
}

const char *wide(struct builder *builder)
{
    return text_of("%%d%u", pick(builder, WIDE_REGISTERS));
}

const char *predicate(struct builder *builder)
{
    return text_of("%%p%u", pick(builder, PREDICATE_REGISTERS));
}

const char *condition(struct builder *builder)
{
    const char *negation = chance(builder, 2) ? "!" : "";
    return text_of("%s%s", negation, predicate(builder));
}

const char *guard(struct builder *builder)
{
    if (!chance(builder, 5))
        return "";
    return text_of("@%s ", condition(builder));
}

const char *register_for(struct builder *builder, const char *type)
{
    if (strstr(type, "64"))
        return wide(builder);
    return strstr(type, "32") ? any_register(builder) : narrow(builder);
}

static uint64_t literal_bits(struct builder *builder, unsigned size)
{
    static const uint64_t corners[] = {0, 1, 2, 3, 7, 31, 32, 63, 255, 0x7fff, 0xffff};
    uint64_t bits = chance(builder, 2) ? PICK(builder, corners) : draw(builder);
    return size == 64 ? bits : bits & ((1ull << size) - 1);
}

const char *literal(struct builder *builder, const char *type)
{
    if (strcmp(type, "f32") == 0) {
        static const uint32_t corners[] = {0,          0x80000000, 0x3f800000, 0xbf000000,
                                           0x7f7fffff, 0x00000001, 0x7f800000, 0x40490fdb};
        return text_of("0f%08X",
                       chance(builder, 2) ? PICK(builder, corners) : (uint32_t)draw(builder));
    }
    if (strcmp(type, "f64") == 0) {
        static const uint64_t corners[] = {
            0, 1ull << 63,         0x3ff0000000000000, 0xbfe0000000000000,
            1, 0x7fefffffffffffff, 0x7ff0000000000000};
        return text_of("0d%016llX", (unsigned long long)(chance(builder, 2) ? PICK(builder, corners)
                                                                            : draw(builder)));
    }
    unsigned size = strstr(type, "64") ? 64 : strstr(type, "32") ? 32 : 15;
    uint64_t bits = literal_bits(builder, size);
    if (type[0] == 's' && size == 32)
        return text_of("%d", (int32_t)bits);
    if (type[0] == 's' && size == 64)
        return text_of("%lld", (long long)(bits >> 1));
    return text_of("0x%llx", (unsigned long long)bits);
}

const char *warp_mask(const struct builder *builder)
{
    return builder->threads % 32 ? "%mask" : "0xffffffff";
}
