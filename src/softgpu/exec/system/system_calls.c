/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of a kernel: printf, and the message of a failed assert. And its heap.
 *
 * Formats and arguments are in memory that the kernel wrote, so every byte is looked up before it
 * is read.
 */
#include "system_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block_state.h"
#include "space.h"
#include "system_frame.h"
#include "translate.h"
#include "warp_fault.h"

#define MAX_TEXT 4096

/* ---- Reading the kernel's memory ---- */

/* Copies up to a NUL; false when the text leaves the memory that may be read. */
static bool read_text(struct warp *warp, uint64_t address, char *text, size_t size)
{
    uint64_t readable = translate_readable(warp, address);
    for (size_t i = 0; i < size; i++) {
        if (i >= readable)
            return false;
        text[i] = ((const char *)(uintptr_t)address)[i];
        if (!text[i])
            return true;
    }
    text[size - 1] = '\0';
    return true;
}

static bool read_bytes(struct warp *warp, uint64_t address, void *bytes, size_t size)
{
    if (translate_readable(warp, address) < size)
        return false;
    memcpy(bytes, (const void *)(uintptr_t)address, size);
    return true;
}

static void print_text(struct warp *warp, enum sg_print_kind kind, const struct sg_text *text)
{
    const struct sg_launch *launch = &warp->block->grid->launch;
    if (launch->print && text->part_count)
        launch->print(launch->user, kind, text);
}

/* ---- printf ---- */

struct output {
    char text[MAX_TEXT];
    size_t length, parts_length;
    uint16_t part_sizes[MAX_TEXT]; /* none is 0 */
    unsigned part_count;
};

static void put_text(struct output *output, const char *text, size_t length)
{
    if (length > sizeof(output->text) - output->length)
        length = sizeof(output->text) - output->length;
    memcpy(output->text + output->length, text, length);
    output->length += length;
}

static void end_part(struct output *output)
{
    if (output->length == output->parts_length)
        return;
    output->part_sizes[output->part_count++] = (uint16_t)(output->length - output->parts_length);
    output->parts_length = output->length;
}

/* Arguments lie behind each other, each aligned to its size, as the caller's compiler put them. */
struct arguments {
    struct warp *warp;
    uint64_t next;
    int count;
};

static uint64_t next_argument(struct arguments *arguments, unsigned size)
{
    uint64_t value = 0;
    arguments->next = (arguments->next + size - 1) & ~(uint64_t)(size - 1);
    read_bytes(arguments->warp, arguments->next, &value, size);
    arguments->next += size;
    arguments->count++;
    return value;
}

/* One conversion: %flags width .precision length letter. */
struct conversion {
    char spec[48];
    size_t length;
    bool is_long;
    char letter;
};

static const char *take_while(const char *at, const char *set, struct conversion *conversion)
{
    while (*at && strchr(set, *at)) {
        if (conversion->length < 24)
            conversion->spec[conversion->length++] = *at;
        at++;
    }
    return at;
}

/* A number or a star; limited, so that no kernel asks for gigabytes of blanks. */
static const char *take_number(const char *at, struct conversion *conversion,
                               struct arguments *arguments)
{
    long value = 0;
    if (*at == '*') {
        value = (int32_t)next_argument(arguments, 4);
        at++;
    } else if (*at >= '0' && *at <= '9') {
        char *end;
        value = strtol(at, &end, 10);
        at = end;
    } else {
        return at;
    }
    value = value > 1000 ? 1000 : value < -1000 ? -1000 : value;
    conversion->length += (size_t)snprintf(conversion->spec + conversion->length, 8, "%ld", value);
    return at;
}

static const char *take_conversion(const char *at, struct conversion *conversion,
                                   struct arguments *arguments)
{
    *conversion = (struct conversion){.spec = "%", .length = 1};
    at = take_while(at, "-+ #0", conversion);
    at = take_number(at, conversion, arguments);
    if (*at == '.') {
        conversion->spec[conversion->length++] = *at++;
        at = take_number(at, conversion, arguments);
    }
    while (*at && strchr("hlLqjzt", *at)) {
        conversion->is_long |= strchr("lqjzt", *at) != NULL;
        at++;
    }
    conversion->letter = *at;
    return *at ? at + 1 : at;
}

static void put_integer(struct output *output, struct conversion *conversion,
                        struct arguments *arguments)
{
    char text[1200];
    bool is_signed = conversion->letter == 'd' || conversion->letter == 'i';
    uint64_t value = next_argument(arguments, conversion->is_long ? 8 : 4);
    if (!conversion->is_long && is_signed)
        value = (uint64_t)(int64_t)(int32_t)value;
    snprintf(conversion->spec + conversion->length, sizeof(conversion->spec) - conversion->length,
             "ll%c", conversion->letter);
    int length = snprintf(text, sizeof(text), conversion->spec, (long long)value);
    put_text(output, text, length > 0 ? strnlen(text, sizeof(text)) : 0);
}

static void put_double(struct output *output, struct conversion *conversion,
                       struct arguments *arguments)
{
    char text[1500];
    uint64_t bits = next_argument(arguments, 8);
    double value;
    memcpy(&value, &bits, sizeof(value));
    conversion->spec[conversion->length] = conversion->letter;
    snprintf(text, sizeof(text), conversion->spec, value);
    put_text(output, text, strlen(text));
}

static void put_string(struct output *output, struct conversion *conversion,
                       struct arguments *arguments)
{
    char text[1500], string[1024] = "(null)";
    uint64_t address = next_argument(arguments, 8);
    if (address && !read_text(arguments->warp, address, string, sizeof(string)))
        strcpy(string, "(unreadable)");
    conversion->spec[conversion->length] = 's';
    snprintf(text, sizeof(text), conversion->spec, string);
    put_text(output, text, strlen(text));
}

static void put_character(struct output *output, struct conversion *conversion,
                          struct arguments *arguments)
{
    char text[1200];
    conversion->spec[conversion->length] = 'c';
    int length = snprintf(text, sizeof(text), conversion->spec, (int)next_argument(arguments, 4));
    put_text(output, text, length > 0 && length < (int)sizeof(text) ? (size_t)length : 0);
}

static void put_pointer(struct output *output, struct conversion *conversion,
                        struct arguments *arguments)
{
    char text[1200];
    conversion->spec[conversion->length] = 'p';
    snprintf(text, sizeof(text), conversion->spec, (void *)(uintptr_t)next_argument(arguments, 8));
    put_text(output, text, strlen(text));
}

static void put_conversion(struct output *output, struct conversion *conversion,
                           struct arguments *arguments)
{
    char letter = conversion->letter;
    if (letter == '%')
        put_text(output, "%", 1);
    else if (letter && strchr("diuoxX", letter))
        put_integer(output, conversion, arguments);
    else if (letter && strchr("eEfFgGaA", letter))
        put_double(output, conversion, arguments);
    else if (letter == 's')
        put_string(output, conversion, arguments);
    else if (letter == 'c')
        put_character(output, conversion, arguments);
    else if (letter == 'p')
        put_pointer(output, conversion, arguments);
    else
        put_text(output, conversion->spec, conversion->length);
}

static int format_text(struct warp *warp, const char *format, uint64_t address,
                       struct output *output)
{
    struct arguments arguments = {.warp = warp, .next = address};
    output->length = output->parts_length = output->part_count = 0;
    while (*format) {
        size_t plain = strcspn(format, "%");
        put_text(output, format, plain);
        format += plain;
        if (*format != '%')
            continue;
        struct conversion conversion;
        format = take_conversion(format + 1, &conversion, &arguments);
        put_conversion(output, &conversion, &arguments);
        end_part(output);
    }
    end_part(output);
    return arguments.count;
}

void run_printf(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        char format[1024];
        struct output output;
        int32_t count = -1;
        if (read_text(warp, frame_argument(warp, insn->a, lane), format, sizeof(format))) {
            count = format_text(warp, format, frame_argument(warp, insn->b, lane), &output);
            print_text(warp, SG_PRINT_OUTPUT,
                       &(struct sg_text){output.text, output.part_sizes, output.part_count});
        }
        frame_set_result(warp, insn->d, lane, &count, sizeof(count));
    }
}

/* ---- assert ---- */

/* __assertfail(message, file, line, function, size of a character) */
void run_assert_fail(struct warp *warp, const struct insn *insn)
{
    unsigned first = (unsigned)__builtin_ctz(warp->active);
    const struct block *block = warp->block;
    const uint32_t *shape = block->grid->launch.block;
    char message[256] = "", file[256] = "", function[256] = "";
    read_text(warp, frame_argument(warp, insn->a, first), message, sizeof(message));
    read_text(warp, frame_argument(warp, insn->b, first), file, sizeof(file));
    read_text(warp, frame_argument(warp, insn->p, first), function, sizeof(function));
    unsigned line = (uint32_t)frame_argument(warp, insn->c, first);
    EACH_ACTIVE_LANE
    {
        char text[1024];
        uint32_t thread = warp->index * LANES + lane;
        snprintf(text, sizeof(text),
                 "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file,
                 line, function, block->index[0], block->index[1], block->index[2],
                 thread % shape[0], thread / shape[0] % shape[1], thread / shape[0] / shape[1],
                 message);
        uint16_t size = (uint16_t)strlen(text);
        print_text(warp, SG_PRINT_ERROR, &(struct sg_text){text, &size, 1});
    }
    warp_fault(warp, insn, first, CUDA_ERROR_ASSERT, "assertion `%s` failed at %s:%u", message,
               file, line);
}

/* ---- The heap ---- */

void run_malloc(struct warp *warp, const struct insn *insn)
{
    const struct sg_launch *launch = &warp->block->grid->launch;
    EACH_ACTIVE_LANE
    {
        uint64_t address =
            heap_allocate(launch->space, launch->owner, frame_argument(warp, insn->a, lane));
        frame_set_result(warp, insn->d, lane, &address, sizeof(address));
    }
}

void run_free(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        uint64_t address = frame_argument(warp, insn->a, lane);
        if (address && !heap_release(warp->block->grid->launch.space, address)) {
            warp_fault(warp, insn, lane, CUDA_ERROR_LAUNCH_FAILED,
                       "free of 0x%llx, which malloc did not give", (unsigned long long)address);
            return;
        }
    }
}

/* ---- graphs ---- */

void run_set_conditional(struct warp *warp, const struct insn *insn)
{
    const struct sg_launch *launch = &warp->block->grid->launch;

    if (!launch->set_condition)
        return;
    EACH_ACTIVE_LANE
    {
        launch->set_condition(launch->user, frame_argument(warp, insn->a, lane),
                              (uint32_t)frame_argument(warp, insn->b, lane));
    }
}
