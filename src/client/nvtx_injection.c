/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX asks the library that NVTX_INJECTION64_PATH names to put functions of its own into its
 * tables; `funnel run` names this library. Ranges go to `funnel trace`, which has no domains, and
 * to a profiler of the program.
 */
#include <stdatomic.h>
#include <string.h>
#include <wchar.h>

#include "client_profile.h"
#include "client_ranges.h"
#include "nvtx_abi.h"

/* From nvtxEventAttributes_t of a program, which may be older than ours, and shorter. */
#define ATTRIBUTES_SIZE (offsetof(struct nvtx_attributes, message) + sizeof(void *))

/* A number that NVTX gets for a range has that of a trace in its low half. */
#define RANGE_NUMBER_BITS 32u

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

/* ---- what each function does ---- */

/* What CUPTI calls a function, and the arguments of this call, each of which has 8 bytes. */
struct call {
    uint32_t cbid;
    const char *name;
    const void *arguments;
    const char *domain;
};

#define CALL(function, domain_name, ...)                          \
    (&(struct call){.cbid = NVTX_CBID_##function,                 \
                    .name = "nvtx" #function,                     \
                    .arguments = (const uint64_t[]){__VA_ARGS__}, \
                    .domain = domain_name})

#define WORD(pointer) ((uintptr_t)(pointer))

static void tell_profiler(const struct call *call, enum profiler_mark_kind kind, const char *text,
                          uint64_t number, const void *result)
{
    client_profile_mark(&(struct profiler_mark){
        .kind = kind,
        .cbid = call->cbid,
        .name = call->name,
        .arguments = call->arguments,
        .result = result,
        .domain = call->domain,
        .text = text,
        .number = number,
    });
}

static void mark(const struct call *call, const char *text)
{
    client_mark(text);
    tell_profiler(call, PROFILER_MARK, text, 0, NULL);
}

static int push(const struct call *call, const char *text)
{
    int depth = client_range_push(text);

    tell_profiler(call, PROFILER_PUSH, text, 0, &depth);
    return depth;
}

static int pop(const struct call *call)
{
    int depth = client_range_pop();

    tell_profiler(call, PROFILER_POP, NULL, 0, &depth);
    return depth;
}

static uint64_t start(const struct call *call, const char *text)
{
    static _Atomic uint32_t ranges;
    uint64_t number = atomic_fetch_add_explicit(&ranges, 1, memory_order_relaxed) + 1ull;
    uint64_t result = number << RANGE_NUMBER_BITS | client_range_start(text);

    tell_profiler(call, PROFILER_START, text, number, &result);
    return result;
}

static void end(const struct call *call, uint64_t number)
{
    client_range_end((uint32_t)number);
    tell_profiler(call, PROFILER_END, NULL, number >> RANGE_NUMBER_BITS, NULL);
}

/* A handle is the text. NVTX has no call that ends the handle of a text; that of a domain stays for
 * the records of its ranges. */
static void *name_handle(const struct call *call, const char *text)
{
    void *handle = strdup(text);

    tell_profiler(call, PROFILER_NAME, text, 0, &handle);
    return handle;
}

/* ---- NVTX's functions ---- */

static void mark_event(const struct nvtx_attributes *attributes)
{
    struct name name;

    mark(CALL(MarkEx, NULL, WORD(attributes)), name_of(attributes, &name));
}

static void mark_ascii(const char *text)
{
    mark(CALL(MarkA, NULL, WORD(text)), name_or_none(text));
}

static void mark_unicode(const wchar_t *text)
{
    struct name name;

    mark(CALL(MarkW, NULL, WORD(text)), narrow(text, &name));
}

static int push_event(const struct nvtx_attributes *attributes)
{
    struct name name;

    return push(CALL(RangePushEx, NULL, WORD(attributes)), name_of(attributes, &name));
}

static int push_ascii(const char *text)
{
    return push(CALL(RangePushA, NULL, WORD(text)), name_or_none(text));
}

static int push_unicode(const wchar_t *text)
{
    struct name name;

    return push(CALL(RangePushW, NULL, WORD(text)), narrow(text, &name));
}

static int pop_range(void)
{
    return pop(CALL(RangePop, NULL, 0));
}

static uint64_t start_event(const struct nvtx_attributes *attributes)
{
    struct name name;

    return start(CALL(RangeStartEx, NULL, WORD(attributes)), name_of(attributes, &name));
}

static uint64_t start_ascii(const char *text)
{
    return start(CALL(RangeStartA, NULL, WORD(text)), name_or_none(text));
}

static uint64_t start_unicode(const wchar_t *text)
{
    struct name name;

    return start(CALL(RangeStartW, NULL, WORD(text)), narrow(text, &name));
}

static void end_range(uint64_t number)
{
    end(CALL(RangeEnd, NULL, number), number);
}

/* ---- the same with a domain ---- */

static void domain_mark(void *domain, const struct nvtx_attributes *attributes)
{
    struct name name;

    mark(CALL(DomainMarkEx, domain, WORD(domain), WORD(attributes)), name_of(attributes, &name));
}

static int domain_push(void *domain, const struct nvtx_attributes *attributes)
{
    struct name name;

    return push(CALL(DomainRangePushEx, domain, WORD(domain), WORD(attributes)),
                name_of(attributes, &name));
}

static int domain_pop(void *domain)
{
    return pop(CALL(DomainRangePop, domain, WORD(domain)));
}

static uint64_t domain_start(void *domain, const struct nvtx_attributes *attributes)
{
    struct name name;

    return start(CALL(DomainRangeStartEx, domain, WORD(domain), WORD(attributes)),
                 name_of(attributes, &name));
}

static void domain_end(void *domain, uint64_t number)
{
    end(CALL(DomainRangeEnd, domain, WORD(domain), number), number);
}

static void *register_ascii(void *domain, const char *text)
{
    return name_handle(CALL(DomainRegisterStringA, domain, WORD(domain), WORD(text)),
                       name_or_none(text));
}

static void *register_unicode(void *domain, const wchar_t *text)
{
    struct name name;

    return name_handle(CALL(DomainRegisterStringW, domain, WORD(domain), WORD(text)),
                       narrow(text, &name));
}

static void *create_ascii(const char *text)
{
    return name_handle(CALL(DomainCreateA, NULL, WORD(text)), name_or_none(text));
}

static void *create_unicode(const wchar_t *text)
{
    struct name name;

    return name_handle(CALL(DomainCreateW, NULL, WORD(text)), narrow(text, &name));
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
    {NVTX_RANGE_START_EX, (nvtx_function)start_event},
    {NVTX_RANGE_START_A, (nvtx_function)start_ascii},
    {NVTX_RANGE_START_W, (nvtx_function)start_unicode},
    {NVTX_RANGE_END, (nvtx_function)end_range},
    {NVTX_RANGE_PUSH_EX, (nvtx_function)push_event},
    {NVTX_RANGE_PUSH_A, (nvtx_function)push_ascii},
    {NVTX_RANGE_PUSH_W, (nvtx_function)push_unicode},
    {NVTX_RANGE_POP, (nvtx_function)pop_range},
};

static const struct replacement core2[] = {
    {NVTX_DOMAIN_MARK_EX, (nvtx_function)domain_mark},
    {NVTX_DOMAIN_RANGE_START_EX, (nvtx_function)domain_start},
    {NVTX_DOMAIN_RANGE_END, (nvtx_function)domain_end},
    {NVTX_DOMAIN_RANGE_PUSH_EX, (nvtx_function)domain_push},
    {NVTX_DOMAIN_RANGE_POP, (nvtx_function)domain_pop},
    {NVTX_DOMAIN_REGISTER_STRING_A, (nvtx_function)register_ascii},
    {NVTX_DOMAIN_REGISTER_STRING_W, (nvtx_function)register_unicode},
    {NVTX_DOMAIN_CREATE_A, (nvtx_function)create_ascii},
    {NVTX_DOMAIN_CREATE_W, (nvtx_function)create_unicode},
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
