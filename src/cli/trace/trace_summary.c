/* SPDX-License-Identifier: Apache-2.0 */
/* The work of each client in a trace, by name, the one that took longest first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "trace_data.h"

struct hot {
    const struct trace_entry *entry; /* one of them */
    unsigned count;
    uint64_t total_ns, longest_ns, waited_ns, waited_for_others_ns;
    uint64_t client_ns; /* of all work of this client */
};

static bool is_same_client(const struct trace_entry *a, const struct trace_entry *b)
{
    return a->server == b->server && a->record.id == b->record.id;
}

static struct hot *hot_of(struct hot *list, unsigned *count, const struct trace_entry *entry)
{
    for (unsigned i = 0; i < *count; i++)
        if (is_same_client(list[i].entry, entry) &&
            list[i].entry->record.kind == entry->record.kind &&
            !strcmp(list[i].entry->record.name, entry->record.name))
            return &list[i];
    list[*count] = (struct hot){.entry = entry};
    return &list[(*count)++];
}

static void add_entry(struct hot *hot, const struct trace_entry *entry)
{
    uint64_t took = entry->record.end_ns - entry->record.begin_ns;

    hot->count++;
    hot->total_ns += took;
    hot->longest_ns = took > hot->longest_ns ? took : hot->longest_ns;
    hot->waited_ns += entry->waited_ns;
    hot->waited_for_others_ns += entry->waited_for ? entry->waited_ns : 0;
}

static void add_up_clients(struct hot *list, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned j = 0; j < count; j++)
            if (is_same_client(list[i].entry, list[j].entry))
                list[i].client_ns += list[j].total_ns;
}

/* Clients with the most work first. */
static int compare_rows(const void *left, const void *right)
{
    const struct hot *a = left, *b = right;

    if (!is_same_client(a->entry, b->entry))
        return a->client_ns != b->client_ns ? (a->client_ns < b->client_ns ? 1 : -1)
                                            : (int)a->entry->record.id - (int)b->entry->record.id;
    return (a->total_ns < b->total_ns) - (a->total_ns > b->total_ns);
}

static void print_client(const struct trace_data *data, const struct trace_entry *entry)
{
    const char *command = "";

    for (unsigned i = 0; i < data->count; i++)
        if (data->entries[i].record.kind == TRACE_CLIENT &&
            is_same_client(&data->entries[i], entry))
            command = data->entries[i].record.name;
    printf("\nProgram %d: %s\n", entry->record.pid, command);
    printf("  %-8s %-7s %-11s %-10s %-10s %-10s %-10s %s\n", "COUNT", "SHARE", "TOTAL ms",
           "MEAN us", "LONGEST us", "QUEUED us", "FOR OTHERS", "WORK");
}

static void print_hot(const struct hot *hot)
{
    double share = hot->client_ns ? 100.0 * (double)hot->total_ns / (double)hot->client_ns : 0;
    double others =
        hot->waited_ns ? 100.0 * (double)hot->waited_for_others_ns / (double)hot->waited_ns : 0;

    printf("  %-8u %5.1f%%  %-11.3f %-10.1f %-10.1f %-10.1f %5.1f%%     %s\n", hot->count, share,
           (double)hot->total_ns / 1e6, (double)hot->total_ns / 1e3 / hot->count,
           (double)hot->longest_ns / 1e3, (double)hot->waited_ns / 1e3 / hot->count, others,
           hot->entry->record.name);
}

int trace_print_summary(const struct trace_data *data)
{
    struct hot *list = calloc(data->count + 1, sizeof(*list));
    unsigned count = 0;

    if (!list)
        return cli_fail("out of memory");
    for (unsigned i = 0; i < data->count; i++)
        if (trace_is_work(&data->entries[i]))
            add_entry(hot_of(list, &count, &data->entries[i]), &data->entries[i]);
    add_up_clients(list, count);
    qsort(list, count, sizeof(*list), compare_rows);
    for (unsigned i = 0; i < count; i++) {
        if (i == 0 || !is_same_client(list[i].entry, list[i - 1].entry))
            print_client(data, list[i].entry);
        print_hot(&list[i]);
    }
    if (!count)
        puts("There was no work on a device.");
    free(list);
    return 0;
}
