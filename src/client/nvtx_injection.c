/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX asks the library that NVTX_INJECTION64_PATH names to put functions of its own into its
 * tables; `funnel run` names this library. Ranges go to `funnel trace`, which has no domains, and
 * to a profiler of the program.
 */
#include <stdatomic.h>
#include <string.h>

#include "client_ranges.h"
#include "nvtx_abi.h"
#include "nvtx_attributes.h"
#include "nvtx_call.h"
#include "nvtx_names.h"

/* A number that NVTX gets for a range has that of a trace in its low half. */
#define RANGE_NUMBER_BITS 32u

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(nvtx_get_export_table get);

/* ---- what each function does ---- */

static void mark(const struct nvtx_call *call, const char *text)
{
    client_mark(text);
    nvtx_tell(call, PROFILER_MARK, text, 0, NULL);
}

static int push(const struct nvtx_call *call, const char *text)
{
    int depth = client_range_push(text);

    nvtx_tell(call, PROFILER_PUSH, text, 0, &depth);
    return depth;
}

static int pop(const struct nvtx_call *call)
{
    int depth = client_range_pop();

    nvtx_tell(call, PROFILER_POP, NULL, 0, &depth);
    return depth;
}

static uint64_t start(const struct nvtx_call *call, const char *text)
{
    static _Atomic uint32_t ranges;
    uint64_t number = atomic_fetch_add_explicit(&ranges, 1, memory_order_relaxed) + 1ull;
    uint64_t result = number << RANGE_NUMBER_BITS | client_range_start(text);

    nvtx_tell(call, PROFILER_START, text, number, &result);
    return result;
}

static void end(const struct nvtx_call *call, uint64_t number)
{
    client_range_end((uint32_t)number);
    nvtx_tell(call, PROFILER_END, NULL, number >> RANGE_NUMBER_BITS, NULL);
}

/* A handle is the text. NVTX has no call that ends the handle of a text; that of a domain stays for
 * the records of its ranges. */
static void *name_handle(const struct nvtx_call *call, const char *text)
{
    void *handle = strdup(text);

    nvtx_tell(call, PROFILER_NAME, text, 0, &handle);
    return handle;
}

/* ---- NVTX's functions ---- */

static void mark_event(const struct nvtx_attributes *attributes)
{
    struct profiler_mark_data data;
    struct nvtx_name name;

    mark(NVTX_CALL_WITH(MarkEx, NULL, nvtx_describe(attributes, &data), NVTX_WORD(attributes)),
         nvtx_message(attributes, &name));
}

static void mark_ascii(const char *text)
{
    mark(NVTX_CALL(MarkA, NULL, NVTX_WORD(text)), nvtx_text(text));
}

static void mark_unicode(const wchar_t *text)
{
    struct nvtx_name name;

    mark(NVTX_CALL(MarkW, NULL, NVTX_WORD(text)), nvtx_narrow(text, &name));
}

static int push_event(const struct nvtx_attributes *attributes)
{
    struct profiler_mark_data data;
    struct nvtx_name name;

    return push(
        NVTX_CALL_WITH(RangePushEx, NULL, nvtx_describe(attributes, &data), NVTX_WORD(attributes)),
        nvtx_message(attributes, &name));
}

static int push_ascii(const char *text)
{
    return push(NVTX_CALL(RangePushA, NULL, NVTX_WORD(text)), nvtx_text(text));
}

static int push_unicode(const wchar_t *text)
{
    struct nvtx_name name;

    return push(NVTX_CALL(RangePushW, NULL, NVTX_WORD(text)), nvtx_narrow(text, &name));
}

static int pop_range(void)
{
    return pop(NVTX_CALL(RangePop, NULL, 0));
}

static uint64_t start_event(const struct nvtx_attributes *attributes)
{
    struct profiler_mark_data data;
    struct nvtx_name name;

    return start(
        NVTX_CALL_WITH(RangeStartEx, NULL, nvtx_describe(attributes, &data), NVTX_WORD(attributes)),
        nvtx_message(attributes, &name));
}

static uint64_t start_ascii(const char *text)
{
    return start(NVTX_CALL(RangeStartA, NULL, NVTX_WORD(text)), nvtx_text(text));
}

static uint64_t start_unicode(const wchar_t *text)
{
    struct nvtx_name name;

    return start(NVTX_CALL(RangeStartW, NULL, NVTX_WORD(text)), nvtx_narrow(text, &name));
}

static void end_range(uint64_t number)
{
    end(NVTX_CALL(RangeEnd, NULL, number), number);
}

/* ---- the same with a domain ---- */

static void domain_mark(void *domain, const struct nvtx_attributes *attributes)
{
    struct profiler_mark_data data;
    struct nvtx_name name;

    mark(NVTX_CALL_WITH(DomainMarkEx, domain, nvtx_describe(attributes, &data), NVTX_WORD(domain),
                        NVTX_WORD(attributes)),
         nvtx_message(attributes, &name));
}

static int domain_push(void *domain, const struct nvtx_attributes *attributes)
{
    struct profiler_mark_data data;
    struct nvtx_name name;

    return push(NVTX_CALL_WITH(DomainRangePushEx, domain, nvtx_describe(attributes, &data),
                               NVTX_WORD(domain), NVTX_WORD(attributes)),
                nvtx_message(attributes, &name));
}

static int domain_pop(void *domain)
{
    return pop(NVTX_CALL(DomainRangePop, domain, NVTX_WORD(domain)));
}

static uint64_t domain_start(void *domain, const struct nvtx_attributes *attributes)
{
    struct profiler_mark_data data;
    struct nvtx_name name;

    return start(NVTX_CALL_WITH(DomainRangeStartEx, domain, nvtx_describe(attributes, &data),
                                NVTX_WORD(domain), NVTX_WORD(attributes)),
                 nvtx_message(attributes, &name));
}

static void domain_end(void *domain, uint64_t number)
{
    end(NVTX_CALL(DomainRangeEnd, domain, NVTX_WORD(domain), number), number);
}

static void *register_ascii(void *domain, const char *text)
{
    return name_handle(NVTX_CALL(DomainRegisterStringA, domain, NVTX_WORD(domain), NVTX_WORD(text)),
                       nvtx_text(text));
}

static void *register_unicode(void *domain, const wchar_t *text)
{
    struct nvtx_name name;

    return name_handle(NVTX_CALL(DomainRegisterStringW, domain, NVTX_WORD(domain), NVTX_WORD(text)),
                       nvtx_narrow(text, &name));
}

static void *create_ascii(const char *text)
{
    return name_handle(NVTX_CALL(DomainCreateA, NULL, NVTX_WORD(text)), nvtx_text(text));
}

static void *create_unicode(const wchar_t *text)
{
    struct nvtx_name name;

    return name_handle(NVTX_CALL(DomainCreateW, NULL, NVTX_WORD(text)), nvtx_narrow(text, &name));
}

/* ---- the tables ---- */

static const struct nvtx_replacement core[] = {
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

static const struct nvtx_replacement core2[] = {
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

/* 1: this library stays. NVTX sets the functions that it does not replace to do nothing. */
int InitializeInjectionNvtx2(nvtx_get_export_table get)
{
    const struct nvtx_callbacks *callbacks = get(NVTX_TABLE_CALLBACKS);

    if (!callbacks || callbacks->struct_size < sizeof(*callbacks))
        return 0;
    nvtx_replace(callbacks, NVTX_MODULE_CORE, core, sizeof(core) / sizeof(*core));
    nvtx_replace(callbacks, NVTX_MODULE_CORE2, core2, sizeof(core2) / sizeof(*core2));
    nvtx_names_replace(callbacks);
    return 1;
}
