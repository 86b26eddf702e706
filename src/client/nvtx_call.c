/* SPDX-License-Identifier: Apache-2.0 */
/* See nvtx_call.h. */
#include "nvtx_call.h"

#include "client_profile.h"

const char *nvtx_narrow(const wchar_t *wide, struct nvtx_name *name)
{
    unsigned length = 0;

    for (; wide && wide[length] && length < RANGE_NAME_MAX; length++)
        name->text[length] = wide[length] < ' ' || wide[length] > '~' ? '?' : (char)wide[length];
    name->text[length] = '\0';
    return name->text;
}

const char *nvtx_text(const char *text)
{
    return text ? text : "";
}

void nvtx_tell(const struct nvtx_call *call, enum profiler_mark_kind kind, const char *text,
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
        .data = call->data,
    });
}

void nvtx_replace(const struct nvtx_callbacks *callbacks, enum nvtx_module module,
                  const struct nvtx_replacement *list, unsigned count)
{
    nvtx_function **table;
    unsigned size;

    if (!callbacks->get_module_table(module, &table, &size))
        return;
    for (unsigned i = 0; i < count; i++)
        if (list[i].place < size && table[list[i].place])
            *table[list[i].place] = list[i].function;
}
