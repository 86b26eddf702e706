/* SPDX-License-Identifier: Apache-2.0 */
/* Records of kernels. The reader believes the sizes in a record only as far as there are bytes. */
#include "kernel_record.h"

#include <string.h>

struct header {
    uint32_t size; /* of the record */
    uint32_t number, param_count, params_size;
    int32_t attributes[KERNEL_ATTRIBUTES];
};

size_t kernel_record_size(const struct kernel_facts *facts)
{
    size_t size = sizeof(struct header) + facts->param_count * 8ull + strlen(facts->name) + 1;

    return (size + 3) & ~(size_t)3;
}

void kernel_record_write(const struct kernel_facts *facts, void *target)
{
    struct header header = {.size = (uint32_t)kernel_record_size(facts),
                            .number = facts->number,
                            .param_count = facts->param_count,
                            .params_size = facts->params_size};
    size_t layout_size = facts->param_count * 8ull;
    char *at = target;

    memcpy(header.attributes, facts->attributes, sizeof(header.attributes));
    memset(at + header.size - 4, 0, 4);
    memcpy(at, &header, sizeof(header));
    if (layout_size)
        memcpy(at + sizeof(header), facts->layout, layout_size);
    memcpy(at + sizeof(header) + layout_size, facts->name, strlen(facts->name) + 1);
}

bool kernel_record_read(const void *source, size_t size, struct kernel_facts *ret_facts,
                        size_t *ret_record_size)
{
    const char *at = source;
    struct header header;

    if (size < sizeof(header))
        return false;
    memcpy(&header, at, sizeof(header));
    if (header.size > size || header.size % 4 || header.size <= sizeof(header))
        return false;
    size_t rest = header.size - sizeof(header);
    if (header.param_count > rest / 8)
        return false;
    size_t layout_size = header.param_count * 8ull;
    const char *name = at + sizeof(header) + layout_size;
    if (!memchr(name, '\0', rest - layout_size))
        return false;
    *ret_facts = (struct kernel_facts){.name = name,
                                       .layout = (const void *)(at + sizeof(header)),
                                       .number = header.number,
                                       .param_count = header.param_count,
                                       .params_size = header.params_size};
    memcpy(ret_facts->attributes, header.attributes, sizeof(header.attributes));
    *ret_record_size = header.size;
    return true;
}
