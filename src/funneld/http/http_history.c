/* SPDX-License-Identifier: Apache-2.0 */
/* See http_history.h. */
#include "http_history.h"

#include <string.h>

#include "json_text.h"
#include "user_name.h"

static void add_gpus(struct evbuffer *out)
{
    const uint8_t *uuid;
    char text[GPU_UUID_TEXT];

    for (uint32_t i = 0; (uuid = usage_history_gpu_uuid(i)); i++) {
        gpu_uuid_text(uuid, text);
        evbuffer_add_printf(out, "%s\"%s\"", i ? "," : "", text);
    }
}

static void add_program(struct evbuffer *out, const struct history_program *program,
                        const char *between)
{
    const char *user = user_name(program->uid);

    evbuffer_add_printf(
        out, "%s\"%u\":{\"server\":%d,\"id\":%u,\"pid\":%d,\"color\":%u,\"user\":", between,
        program->serial, program->server, program->id, program->pid, program->color);
    json_text_add(out, user, strlen(user));
    evbuffer_add_printf(out, ",\"group\":");
    json_text_add(out, program->group, sizeof(program->group));
    evbuffer_add(out, "}", 1);
}

static void add_sample(struct evbuffer *out, const struct history_sample *sample,
                       uint32_t told[HISTORY_PROGRAMS])
{
    evbuffer_add_printf(out, "[%.3f,[", sample->time);
    for (unsigned i = 0; i < sample->count; i++) {
        const struct history_entry *entry = &sample->entries[i];
        const struct history_program *program = usage_history_program(entry->program);

        if (program)
            told[program->serial % HISTORY_PROGRAMS] = program->serial;
        evbuffer_add_printf(out, "%s[%u,%u,%.4g,%.0f]", i ? "," : "", program ? program->serial : 0,
                            entry->gpu, entry->sms, entry->memory);
    }
    evbuffer_add_printf(out, "]]");
}

static void add_samples(struct evbuffer *out, enum history_range range, double since,
                        uint32_t told[HISTORY_PROGRAMS])
{
    const struct history_sample *sample;
    const char *between = "";

    while ((sample = usage_history_next(range, since))) {
        evbuffer_add_printf(out, "%s", between);
        add_sample(out, sample, told);
        between = ",";
        since = sample->time;
    }
}

static void add_programs(struct evbuffer *out, const uint32_t told[HISTORY_PROGRAMS])
{
    const char *between = "";

    for (unsigned i = 0; i < HISTORY_PROGRAMS; i++) {
        const struct history_program *program = usage_history_program(told[i]);

        if (!program)
            continue;
        add_program(out, program, between);
        between = ",";
    }
}

void http_history_add(struct evbuffer *out, enum history_range range, double since)
{
    uint32_t told[HISTORY_PROGRAMS] = {0};

    evbuffer_add_printf(out, "{\"period\":%u,\"gpus\":[", usage_history_period(range));
    add_gpus(out);
    evbuffer_add_printf(out, "],\"samples\":[");
    add_samples(out, range, since, told);
    evbuffer_add_printf(out, "],\"programs\":{");
    add_programs(out, told);
    evbuffer_add_printf(out, "}}");
}
