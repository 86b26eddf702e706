/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX asks the library that NVTX_INJECTION64_PATH names to put functions of its own into its
 * tables; `funnel run` names this library. Ranges of all domains are recorded alike.
 */
#include <string.h>
#include <wchar.h>

#include "client_ranges.h"
#include "nvtx_abi.h"

/* From nvtxEventAttributes_t of a program, which may be older than ours, and shorter. */
#define ATTRIBUTES_SIZE (offsetof(struct nvtx_attributes, message) + sizeof(void *))

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(nvtx_get_export_table get);

/* ---- names ---- */

struct name {
    char text[RANGE_NAME_MAX + 1];
};

/* Characters beyond ASCII are shown as question marks. */
static const char *narrow(const wchar_t *wide, struct name *name)
{
    unsigned length = 0;

    for (; wide && wide[length] && length < RANGE_NAME_MAX; length++)
        name->text[length] = wide[length] < ' ' || wide[length] > '~' ? '?' : (char)wide[length];
    name->text[length] = '\0';
    return name->text;
}

static const char *name_or_none(const char *text)
{
    return text ? text : "";
}

/* The name lives as long as the program's, and `buffer`. */
static const char *name_of(const struct nvtx_attributes *attributes, struct name *buffer)
{
    if (!attributes || attributes->size < ATTRIBUTES_SIZE)
        return "";
    switch (attributes->message_type) {
    case NVTX_MESSAGE_UNICODE:
        return narrow(attributes->message, buffer);
    case NVTX_MESSAGE_ASCII:
    case NVTX_MESSAGE_REGISTERED:
        return name_or_none(attributes->message);
    default:
        return "";
    }
}

/* A handle is the text. NVTX has no call that ends one. */
static void *register_ascii(void *domain, const char *text)
{
    return strdup(name_or_none(text));
}

static void *register_unicode(void *domain, const wchar_t *text)
{
    struct name name;

    return strdup(narrow(text, &name));
}

/* ---- marks and ranges ---- */

static void mark_event(const struct nvtx_attributes *attributes)
{
    struct name name;

    client_mark(name_of(attributes, &name));
}

static void mark_ascii(const char *text)
{
    client_mark(name_or_none(text));
}

static void mark_unicode(const wchar_t *text)
{
    struct name name;

    client_mark(narrow(text, &name));
}

static int push(const struct nvtx_attributes *attributes)
{
    struct name name;

    return client_range_push(name_of(attributes, &name));
}

static int push_ascii(const char *text)
{
    return client_range_push(name_or_none(text));
}

static int push_unicode(const wchar_t *text)
{
    struct name name;

    return client_range_push(narrow(text, &name));
}

static uint64_t start_range(const struct nvtx_attributes *attributes)
{
    struct name name;

    return client_range_start(name_of(attributes, &name));
}

static uint64_t start_ascii(const char *text)
{
    return client_range_start(name_or_none(text));
}

static uint64_t start_unicode(const wchar_t *text)
{
    struct name name;

    return client_range_start(narrow(text, &name));
}

/* ---- the same with a domain ---- */

static void domain_mark(void *domain, const struct nvtx_attributes *attributes)
{
    mark_event(attributes);
}

static int domain_push(void *domain, const struct nvtx_attributes *attributes)
{
    return push(attributes);
}

static int domain_pop(void *domain)
{
    return client_range_pop();
}

static uint64_t domain_start(void *domain, const struct nvtx_attributes *attributes)
{
    return start_range(attributes);
}

static void domain_end(void *domain, uint64_t number)
{
    client_range_end(number);
}

/* ---- the tables ---- */

struct replacement {
    unsigned place;
    nvtx_function function;
};

static const struct replacement core[] = {
    {NVTX_MARK_EX, (nvtx_function)mark_event},
    {NVTX_MARK_A, (nvtx_function)mark_ascii},
    {NVTX_MARK_W, (nvtx_function)mark_unicode},
    {NVTX_RANGE_START_EX, (nvtx_function)start_range},
    {NVTX_RANGE_START_A, (nvtx_function)start_ascii},
    {NVTX_RANGE_START_W, (nvtx_function)start_unicode},
    {NVTX_RANGE_END, (nvtx_function)client_range_end},
    {NVTX_RANGE_PUSH_EX, (nvtx_function)push},
    {NVTX_RANGE_PUSH_A, (nvtx_function)push_ascii},
    {NVTX_RANGE_PUSH_W, (nvtx_function)push_unicode},
    {NVTX_RANGE_POP, (nvtx_function)client_range_pop},
};

static const struct replacement core2[] = {
    {NVTX_DOMAIN_MARK_EX, (nvtx_function)domain_mark},
    {NVTX_DOMAIN_RANGE_START_EX, (nvtx_function)domain_start},
    {NVTX_DOMAIN_RANGE_END, (nvtx_function)domain_end},
    {NVTX_DOMAIN_RANGE_PUSH_EX, (nvtx_function)domain_push},
    {NVTX_DOMAIN_RANGE_POP, (nvtx_function)domain_pop},
    {NVTX_DOMAIN_REGISTER_STRING_A, (nvtx_function)register_ascii},
    {NVTX_DOMAIN_REGISTER_STRING_W, (nvtx_function)register_unicode},
};

static void replace_callbacks(const struct nvtx_callbacks *callbacks, enum nvtx_module module,
                              const struct replacement *list, unsigned count)
{
    nvtx_function **table;
    unsigned size;

    if (!callbacks->get_module_table(module, &table, &size))
        return;
    for (unsigned i = 0; i < count; i++)
        if (list[i].place < size && table[list[i].place])
            *table[list[i].place] = list[i].function;
}

/* 1: this library stays. NVTX sets the functions that it does not replace to do nothing. */
int InitializeInjectionNvtx2(nvtx_get_export_table get)
{
    const struct nvtx_callbacks *callbacks = get(NVTX_TABLE_CALLBACKS);

    if (!callbacks || callbacks->struct_size < sizeof(*callbacks))
        return 0;
    replace_callbacks(callbacks, NVTX_MODULE_CORE, core, sizeof(core) / sizeof(*core));
    replace_callbacks(callbacks, NVTX_MODULE_CORE2, core2, sizeof(core2) / sizeof(*core2));
    return 1;
}
