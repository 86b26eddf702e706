/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as Chrome's and Perfetto's JSON. It has a process for each client, with a line for the
 * commands that the server executed and one for each stream. Arrows lead from a command to its
 * work. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "trace_data.h"

#define COMMANDS_LINE 1 /* thread numbers in the file */
#define STREAM_LINES 100
#define THREAD_LINES 10000000 /* of the program; beyond all streams */

struct writer {
    FILE *out;
    const struct trace_data *data;
    bool comma;
};

static void begin_event(struct writer *writer)
{
    fputs(writer->comma ? ",\n" : "\n", writer->out);
    writer->comma = true;
}

/* Names have printable ASCII only. */
static void put_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static double microseconds(const struct writer *writer, uint64_t ns)
{
    return ((double)ns - (double)writer->data->begin_ns) / 1e3;
}

/* Clients of different servers may have the same number, and in other PID namespaces no process id.
 */
static long process_of(const struct trace_entry *entry)
{
    return entry->record.pid ? entry->record.pid
                             : 1000000000L + entry->server * 100000L + (long)entry->record.id;
}

static unsigned line_of(const struct trace_entry *entry)
{
    if (trace_is_work(entry))
        return STREAM_LINES + (unsigned)entry->record.stream;
    return entry->record.kind == TRACE_RANGE ? THREAD_LINES + (unsigned)entry->record.stream
                                             : COMMANDS_LINE;
}

/* ---- names of processes and lines ---- */

static void name_line(struct writer *writer, const struct trace_entry *entry)
{
    begin_event(writer);
    fprintf(writer->out, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%ld,\"tid\":%u,\"args\":",
            process_of(entry), line_of(entry));
    if (trace_is_work(entry))
        fprintf(writer->out, "{\"name\":\"device %u, stream %llu\"}}", entry->record.device,
                (unsigned long long)entry->record.stream);
    else if (entry->record.kind == TRACE_RANGE)
        fprintf(writer->out, "{\"name\":\"thread %u of the program\"}}",
                (unsigned)entry->record.stream);
    else
        fputs("{\"name\":\"commands in the server\"}}", writer->out);
}

static void name_process(struct writer *writer, const struct trace_entry *entry)
{
    begin_event(writer);
    fprintf(writer->out, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%ld,\"args\":{\"name\":",
            process_of(entry));
    put_string(writer->out, entry->record.name);
    fputs("}}", writer->out);
}

static bool is_first_of_line(const struct trace_data *data, unsigned index)
{
    const struct trace_entry *entry = &data->entries[index];

    for (unsigned i = index; i > 0; i--) {
        const struct trace_entry *other = &data->entries[i - 1];

        if (process_of(other) == process_of(entry) && line_of(other) == line_of(entry) &&
            other->record.kind != TRACE_CLIENT)
            return false;
    }
    return true;
}

static void write_names(struct writer *writer)
{
    const struct trace_data *data = writer->data;

    for (unsigned i = 0; i < data->count; i++) {
        if (data->entries[i].record.kind == TRACE_CLIENT)
            name_process(writer, &data->entries[i]);
        else if (is_first_of_line(data, i))
            name_line(writer, &data->entries[i]);
    }
}

/* ---- events ---- */

static const char *category_of(const struct trace_entry *entry)
{
    static const char *const names[] = {"",     "client", "command", "kernel",
                                        "copy", "memset", "graph",   "range"};

    return names[entry->record.kind];
}

static void write_arguments(struct writer *writer, const struct trace_entry *entry)
{
    const struct trace_record *record = &entry->record;
    FILE *out = writer->out;

    fprintf(out, ",\"args\":{\"queued_us\":%.3f", (double)entry->waited_ns / 1e3);
    if (record->kind == TRACE_KERNEL)
        fprintf(out, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]", record->grid[0], record->grid[1],
                record->grid[2], record->block[0], record->block[1], record->block[2]);
    else
        fprintf(out, ",\"bytes\":%llu", (unsigned long long)record->bytes);
    if (entry->waited_for) {
        fprintf(out, ",\"waited_for\":%ld,\"waited_for_work\":", process_of(entry->waited_for));
        put_string(out, entry->waited_for->record.name);
    }
    fputc('}', out);
}

static void write_slice(struct writer *writer, const struct trace_entry *entry)
{
    const struct trace_record *record = &entry->record;

    begin_event(writer);
    fputs("{\"ph\":\"X\",\"name\":", writer->out);
    put_string(writer->out, record->name);
    fprintf(writer->out, ",\"cat\":\"%s\",\"pid\":%ld,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f",
            category_of(entry), process_of(entry), line_of(entry),
            microseconds(writer, record->begin_ns),
            (double)(record->end_ns - record->begin_ns) / 1e3);
    if (trace_is_work(entry))
        write_arguments(writer, entry);
    fputc('}', writer->out);
}

/* From the end of the command, which is when its work was submitted. */
static void write_arrow(struct writer *writer, const struct trace_entry *entry, unsigned number)
{
    begin_event(writer);
    fprintf(writer->out,
            "{\"ph\":\"s\",\"name\":\"submit\",\"cat\":\"submit\",\"id\":%u,\"pid\":%ld,\"tid\":%u,"
            "\"ts\":%.3f}",
            number, process_of(entry), COMMANDS_LINE,
            microseconds(writer, entry->record.submitted_ns) - 0.001);
    begin_event(writer);
    fprintf(writer->out,
            "{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"submit\",\"cat\":\"submit\",\"id\":%u,"
            "\"pid\":%ld,\"tid\":%u,\"ts\":%.3f}",
            number, process_of(entry), line_of(entry),
            microseconds(writer, entry->record.begin_ns));
}

int trace_write_json(const struct trace_data *data, const char *path)
{
    struct writer writer = {fopen(path, "we"), data, false};

    if (!writer.out)
        return cli_fail("cannot write %s: %s", path, strerror(errno));
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", writer.out);
    write_names(&writer);
    for (unsigned i = 0; i < data->count; i++) {
        if (data->entries[i].record.kind != TRACE_CLIENT)
            write_slice(&writer, &data->entries[i]);
        if (trace_is_work(&data->entries[i]))
            write_arrow(&writer, &data->entries[i], i);
    }
    fputs("\n]}\n", writer.out);
    bool failed = ferror(writer.out);
    failed |= fclose(writer.out) != 0;
    return failed ? cli_fail("cannot write %s: %s", path, strerror(errno)) : 0;
}
