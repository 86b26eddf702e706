/* SPDX-License-Identifier: Apache-2.0 */
/* A call of NVTX, and how a profiler of the program is told of it. */
#pragma once

#include <stdint.h>
#include <wchar.h>

#include "client_ranges.h"
#include "nvtx_abi.h"
#include "profiler_interface.h"

struct nvtx_name {
    char text[RANGE_NAME_MAX + 1];
};

/* What CUPTI calls a function, and the arguments of this call, each of which has 8 bytes. */
struct nvtx_call {
    uint32_t cbid;
    const char *name;
    const void *arguments;
    const char *domain;
    const struct profiler_mark_data *data;
};

#define NVTX_CALL_WITH(function, domain_name, mark_data, ...)          \
    (&(struct nvtx_call){.cbid = NVTX_CBID_##function,                 \
                         .name = "nvtx" #function,                     \
                         .arguments = (const uint64_t[]){__VA_ARGS__}, \
                         .domain = domain_name,                        \
                         .data = mark_data})

#define NVTX_CALL(function, domain_name, ...) \
    NVTX_CALL_WITH(function, domain_name, NULL, __VA_ARGS__)

#define NVTX_WORD(value) ((uintptr_t)(value))

struct nvtx_replacement {
    unsigned place;
    nvtx_function function;
};

/* Puts functions into a table of NVTX, as far as the program has these places. */
void nvtx_replace(const struct nvtx_callbacks *callbacks, enum nvtx_module module,
                  const struct nvtx_replacement *list, unsigned count);

/* The text, in `name`. Characters beyond ASCII are shown as question marks. */
const char *nvtx_narrow(const wchar_t *wide, struct nvtx_name *name);

/* "" for NULL. */
const char *nvtx_text(const char *text);

/* `text`, `number` and `result` as struct profiler_mark has them. */
void nvtx_tell(const struct nvtx_call *call, enum profiler_mark_kind kind, const char *text,
               uint64_t number, const void *result);
