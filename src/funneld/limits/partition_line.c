/* SPDX-License-Identifier: Apache-2.0 */
/* See partition_line.h. */
#include "partition_line.h"

#include <errno.h>
#include <string.h>

#include "text.h"

#define NONE "-"
#define CHUNKS_MAX 4096

static const char *word_of(const char *text)
{
    return *text ? text : NONE;
}

void partition_line_write(const struct static_partition *partition,
                          char ret_line[PARTITION_LINE_MAX])
{
    text_format(ret_line, PARTITION_LINE_MAX, "%s %s %u %d %d %s %u %s %d %u",
                word_of(partition->name), word_of(partition->device), partition->chunks,
                partition->takes_remainder, partition->is_of_file, partition->id, partition->first,
                word_of(partition->uuid), partition->is_shareable, partition->most_chunks);
}

static bool read_word(char **rest, char *text, size_t capacity)
{
    const char *word = strtok_r(NULL, " ", rest);

    return word && text_copy(text, capacity, strcmp(word, NONE) ? word : "");
}

static bool read_number(char **rest, uint64_t least, uint64_t most, uint64_t *ret_number)
{
    const char *word = strtok_r(NULL, " ", rest);

    return word && !text_to_u64(word, ret_number) && *ret_number >= least && *ret_number <= most;
}

/* A line of an earlier release ends behind the UUID. */
static bool read_line(char *line, struct static_partition *ret_partition)
{
    struct static_partition partition = {.chunks = 0};
    uint64_t chunks, remainder, of_file, first, shareable = 0, most = 0;
    char *rest = line;
    bool whole = read_word(&rest, partition.name, sizeof(partition.name)) &&
                 read_word(&rest, partition.device, sizeof(partition.device)) &&
                 read_number(&rest, 1, CHUNKS_MAX, &chunks) &&
                 read_number(&rest, 0, 1, &remainder) && read_number(&rest, 0, 1, &of_file) &&
                 read_word(&rest, partition.id, sizeof(partition.id)) &&
                 read_number(&rest, 0, CHUNKS_MAX, &first) &&
                 read_word(&rest, partition.uuid, sizeof(partition.uuid)) &&
                 (!*rest || (read_number(&rest, 0, 1, &shareable) &&
                             read_number(&rest, 0, CHUNKS_MAX, &most))) &&
                 !strtok_r(NULL, " ", &rest);

    if (!whole || strlen(partition.id) != STATIC_PARTITION_ID - 1)
        return false;
    partition.chunks = (unsigned)chunks;
    partition.first = (unsigned)first;
    partition.takes_remainder = remainder;
    partition.is_of_file = of_file;
    partition.is_shareable = shareable;
    partition.most_chunks = (unsigned)most;
    *ret_partition = partition;
    return true;
}

/* That the file has defined, as it was. */
static struct static_partition *find_defined(struct static_partitions *partitions,
                                             const struct static_partition *saved)
{
    for (unsigned i = 0; i < partitions->count; i++) {
        struct static_partition *partition = &partitions->partition[i];

        if (partition->is_of_file && !strcmp(partition->name, saved->name) &&
            !strcmp(partition->device, saved->device) && partition->chunks == saved->chunks &&
            partition->takes_remainder == saved->takes_remainder &&
            partition->is_shareable == saved->is_shareable &&
            partition->most_chunks == saved->most_chunks)
            return partition;
    }
    return NULL;
}

int partition_line_restore(struct static_partitions *partitions, const char *line)
{
    struct static_partition saved, *partition;
    char copy[PARTITION_LINE_MAX];

    if (!text_copy(copy, sizeof(copy), line) || !read_line(copy, &saved))
        return -EINVAL;
    partition = find_defined(partitions, &saved);
    if (!partition && saved.is_of_file)
        return 0;
    if (!partition)
        partition = static_partitions_define(partitions, saved.name, saved.device, saved.chunks,
                                             saved.takes_remainder);
    if (!partition)
        return -ENOSPC;
    *partition = saved;
    if (partitions->version3)
        partitions->on = true;
    return 0;
}
