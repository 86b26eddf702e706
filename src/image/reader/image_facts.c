/* SPDX-License-Identifier: Apache-2.0 */
/* A message is a header, a record for each variable and for each kernel that prints or allocates,
 * and the strings. Each record's name follows it. */
#include "image_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image_choice.h"
#include "image_contents.h"

enum flags {
    PRINTS = 1,
    ALLOCATES = 2,
    HAS_VARIABLES = 4,
    HAS_NAMES = 8,
    HAS_STRINGS = 16,
    HAS_CALLERS = 32,
    HAS_POINTERS = 64,
    ALL_FLAGS = 127,
};

struct header {
    uint32_t flags;
    uint32_t count, callers;
    uint32_t strings_size;
    uint64_t variable_bytes;
    uint64_t size; /* of the whole message: one that was cut is seen */
};

enum record_flags {
    CONSTANT = 1,
    RELOCATED = 2,
    ALL_RECORD_FLAGS = 3,
};

struct record {
    uint64_t size;
    uint32_t flags;
    uint32_t length; /* of the name, without a NUL */
};

/* ---- looking ---- */

struct look {
    const struct image_choice *choice; /* NULL: all parts count, and their names are ignored */
    struct image_facts *facts;
    bool complete;         /* all variables so far are known by name, */
    bool complete_strings; /* and all strings of parts that print, and who prints or allocates */
    bool complete_callers;
};

static bool is_wanted(void *context, const struct image_part *part)
{
    const struct look *look = context;

    return !look->choice || image_is_chosen(look->choice, part);
}

static bool note_callers(const struct image_part *part, struct image_facts *facts)
{
    return (!image_part_prints(part) && !image_part_allocates(part)) ||
           image_part_callers(part, &facts->callers);
}

/* The driver loads one of the chosen parts, or links all parts. */
static void add_bytes(const struct look *look, uint64_t bytes)
{
    uint64_t *all = &look->facts->variable_bytes;

    if (look->choice)
        *all = bytes > *all ? bytes : *all;
    else if (__builtin_add_overflow(*all, bytes, all))
        *all = IMAGE_BYTES_UNKNOWN;
}

static bool look_at(void *context, const struct image_part *part)
{
    struct look *look = context;
    struct image_facts *facts = look->facts;
    uint64_t bytes;
    bool named;

    if (image_part_prints(part)) {
        facts->prints = true;
        look->complete_strings =
            look->complete_strings && image_part_strings(part, &facts->strings);
    }
    facts->allocates = facts->allocates || image_part_allocates(part);
    facts->has_pointers = facts->has_pointers || image_part_calls_pointers(part);
    look->complete_callers = look->complete_callers && note_callers(part, facts);
    if (!image_part_has_variables(part))
        return false;
    facts->has_variables = true;
    named = image_part_names(part, &facts->names, &bytes);
    look->complete = look->choice && look->complete && named;
    add_bytes(look, bytes);
    return false;
}

/* Sections that could have variables, but have none, do not count. */
static void conclude(const struct look *look)
{
    struct image_facts *facts = look->facts;

    if (!look->complete)
        image_names_fini(&facts->names);
    if (!look->complete_strings)
        image_strings_fini(&facts->strings);
    if (!look->complete_callers)
        image_names_fini(&facts->callers);
    image_names_merge(&facts->names);
    image_names_merge(&facts->callers);
    facts->has_callers = look->complete_callers;
    facts->has_strings = facts->prints && look->complete_strings;
    facts->has_names = facts->names.count > 0;
    facts->has_variables = facts->has_variables && (facts->has_names || !look->complete);
    if (!facts->has_variables)
        facts->variable_bytes = 0;
}

void image_facts_read(const void *bytes, size_t size, unsigned sm, struct image_facts *ret_facts)
{
    struct image_facts facts = {0};
    struct image_choice choice;
    struct look look = {.facts = &facts, .complete = true, .complete_strings = true};
    const struct image_visit visit = {.wants = is_wanted, .test = look_at, .context = &look};

    if (image_choose(bytes, size, sm, &choice))
        look.choice = &choice;
    look.complete_callers = look.choice; /* unlinked code calls functions in other parts */
    if (image_any_part(bytes, size, &visit)) {
        image_facts_fini(&facts);
        image_facts_assume(&facts);
    } else {
        conclude(&look);
    }
    *ret_facts = facts;
}

void image_facts_assume(struct image_facts *ret_facts)
{
    *ret_facts = (struct image_facts){.prints = true,
                                      .allocates = true,
                                      .has_pointers = true,
                                      .has_variables = true,
                                      .variable_bytes = IMAGE_BYTES_UNKNOWN};
}

void image_facts_fini(struct image_facts *facts)
{
    image_names_fini(&facts->names);
    image_strings_fini(&facts->strings);
    image_names_fini(&facts->callers);
}

/* ---- writing ---- */

static uint64_t names_size(const struct image_names *names)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < names->count; i++)
        size += sizeof(struct record) + strlen(names->names[i].name);
    return size;
}

static char *write_names(const struct image_names *names, char *to)
{
    for (uint32_t i = 0; i < names->count; i++) {
        const struct image_name *name = &names->names[i];
        const struct record record = {.size = name->size,
                                      .flags = (name->constant ? CONSTANT : 0) |
                                               (name->relocated ? RELOCATED : 0),
                                      .length = (uint32_t)strlen(name->name)};

        memcpy(to, &record, sizeof(record));
        memcpy(to + sizeof(record), name->name, record.length);
        to += sizeof(record) + record.length;
    }
    return to;
}

int image_facts_pack(const struct image_facts *facts, void **ret_message, size_t *ret_size)
{
    static const struct image_names none = {0};
    uint64_t strings = facts->strings.size,
             left = IMAGE_FACTS_MAX - sizeof(struct header) - strings;
    bool has_callers = facts->has_callers && names_size(&facts->callers) <= left;
    const struct image_names *callers = has_callers ? &facts->callers : &none;
    bool has_names = facts->has_names && names_size(&facts->names) <= left - names_size(callers);
    const struct image_names *names = has_names ? &facts->names : &none;
    const struct header header = {
        .flags = (facts->prints ? PRINTS : 0) | (facts->allocates ? ALLOCATES : 0) |
                 (facts->has_variables ? HAS_VARIABLES : 0) | (has_names ? HAS_NAMES : 0) |
                 (facts->has_strings ? HAS_STRINGS : 0) | (has_callers ? HAS_CALLERS : 0) |
                 (facts->has_pointers ? HAS_POINTERS : 0),
        .count = names->count,
        .callers = callers->count,
        .variable_bytes = facts->variable_bytes,
        .strings_size = (uint32_t)strings,
        .size = sizeof(header) + names_size(names) + names_size(callers) + strings};
    char *message = malloc(header.size);

    if (!message)
        return -ENOMEM;
    memcpy(message, &header, sizeof(header));
    write_names(callers, write_names(names, message + sizeof(header)));
    if (strings)
        memcpy(message + header.size - strings, facts->strings.bytes, strings);
    *ret_message = message;
    *ret_size = header.size;
    return 0;
}

/* ---- reading what may be wrong ---- */

struct cursor {
    const char *next;
    size_t left;
};

static bool take_bytes(struct cursor *cursor, void *to, size_t size)
{
    if (cursor->left < size)
        return false;
    memcpy(to, cursor->next, size);
    cursor->next += size;
    cursor->left -= size;
    return true;
}

static int parse_name(struct cursor *cursor, struct image_names *names)
{
    struct record record;

    if (!take_bytes(cursor, &record, sizeof(record)) || !record.length ||
        record.flags & ~ALL_RECORD_FLAGS || record.length > cursor->left ||
        memchr(cursor->next, '\0', record.length))
        return -EBADMSG;
    const struct image_name like = {.name = (char *)(uintptr_t)cursor->next,
                                    .size = record.size,
                                    .constant = record.flags & CONSTANT,
                                    .relocated = record.flags & RELOCATED};
    if (!image_names_add_like(names, &like, record.length))
        return -ENOMEM;
    cursor->next += record.length;
    cursor->left -= record.length;
    return 0;
}

static int parse_names(struct cursor *cursor, uint32_t count, struct image_names *names)
{
    int error = 0;

    for (uint32_t i = 0; i < count && !error; i++)
        error = parse_name(cursor, names);
    return error;
}

/* The NUL of the last string ends the message. */
static int parse_strings(struct cursor *cursor, uint64_t size, struct image_strings *strings)
{
    if (cursor->left != size || (size && cursor->next[size - 1]))
        return -EBADMSG;
    return !size || image_strings_add(strings, cursor->next, size - 1) ? 0 : -ENOMEM;
}

static bool agrees(const struct header *header, size_t size)
{
    bool has_names = header->flags & HAS_NAMES;
    bool has_strings = header->flags & HAS_STRINGS, has_callers = header->flags & HAS_CALLERS;

    return header->size == size && size <= IMAGE_FACTS_MAX && !(header->flags & ~ALL_FLAGS) &&
           header->count <= IMAGE_NAMES_MAX && has_names == (header->count > 0) &&
           (!has_names || (header->flags & HAS_VARIABLES)) &&
           (!header->variable_bytes || (header->flags & HAS_VARIABLES)) &&
           header->strings_size <= (has_strings ? IMAGE_STRINGS_MAX : 0) &&
           (!has_strings || (header->flags & PRINTS)) &&
           header->callers <= (has_callers ? IMAGE_NAMES_MAX : 0);
}

int image_facts_parse(const void *message, size_t size, struct image_facts *ret_facts)
{
    struct cursor cursor = {message, size};
    struct header header;

    if (!take_bytes(&cursor, &header, sizeof(header)) || !agrees(&header, size))
        return -EBADMSG;
    struct image_facts facts = {.prints = header.flags & PRINTS,
                                .allocates = header.flags & ALLOCATES,
                                .has_pointers = header.flags & HAS_POINTERS,
                                .has_variables = header.flags & HAS_VARIABLES,
                                .has_names = header.flags & HAS_NAMES,
                                .variable_bytes = header.variable_bytes,
                                .has_strings = header.flags & HAS_STRINGS,
                                .has_callers = header.flags & HAS_CALLERS};
    int error = parse_names(&cursor, header.count, &facts.names);
    if (!error)
        error = parse_names(&cursor, header.callers, &facts.callers);
    if (!error)
        error = parse_strings(&cursor, header.strings_size, &facts.strings);
    if (error) {
        image_facts_fini(&facts);
        return error;
    }
    *ret_facts = facts;
    return 0;
}
