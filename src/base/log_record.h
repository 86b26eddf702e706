/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a log line that programs read: a tab, and an object in JSON up to the end of the
 * line,
 *     ... text\t{"client":4711}
 *     ... text\t{"client":4711,"error":2}
 * The second is an event. Texts contain no tab, so they cannot imitate a record, and their words
 * may change.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct log_record {
    pid_t client;  /* the process that the line concerns, as its reader's namespace numbers it */
    bool is_event; /* its user may ask about this */
    int error;     /* the error of CUDA that the process receives; 0 = none */
};

/* A record of the process `pid`; of an event with this error. */
#define LOG_ABOUT(pid) (&(struct log_record){.client = (pid)})
#define LOG_EVENT(pid, number) \
    (&(struct log_record){.client = (pid), .is_event = true, .error = (int)(number)})

#define LOG_RECORD_MAX 64

/* Writes tab and object: their length. */
size_t log_record_put(const struct log_record *record, char ret_text[LOG_RECORD_MAX]);

/* Reads the record of a line and cuts it off, and the newline, too: whether the line has one. */
bool log_record_cut(char *line, struct log_record *ret_record);
