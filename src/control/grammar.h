/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of commands, written as their help shows it: "SERVER CLIENT", "SERVER [-f]",
 * "-uid UID [-mlopart]", "[PRIORITY]". Parsing follows that very text, so help and parser cannot
 * disagree. Nothing here knows what a command does.
 *
 *     SERVER CLIENT  process ids            PERCENT   0 < p, more than 100 counts as 100
 *     SHARE          0 < p <= 100           QUOTA     SHARE or none
 *     UID            user id                PRIORITY  0 or 1
 *     DEVICE         ordinal or UUID        SECONDS   0 .. a year
 *     MEMORY         integer with M or G    [ ]       optional; a word with - is an option
 *     CEILING        MEMORY or none         GROUP     letters, digits and _
 *     SMS            a number above 0       VERB, OBJECT, FIELD  words that the command knows
 *     NAME           of a server            FORMAT    table, csv or csv,noheader
 *     DEVICES        comma-separated        SIZE      integer with K, M or G
 *     BOOLEAN        true or false          NAMESPACE of a server
 *     PARTITION      of a server            CHUNKS    1 .. 4096
 *     FEATURE        memacct, context-share CHANGES   NAME=VALUE, several with commas
 *     CGROUP         a directory below /sys/fs/cgroup, or none
 *     LEVELS         0 .. 64, or all        POLICY    default, short, medium or long
 *     SHOWN          true or false          YIELD     a number up to 255
 *     LENT           true or false          MOST      1 .. 4096
 *     CLASS          critical, normal or batch
 *     ISOLATION      none, class, user, group, new or program
 *     OVERSUBSCRIBED true or false      JOINT     MEMORY or none
 *     IDLE           seconds above 0, or none
 *     --key=KIND     an option of MPS v3: --key=value, or key=value
 *     --key KIND     an option of Funnel: --key value, or -key value
 */
#pragma once

#include "grammar_value.h"

#define GRAMMAR_WORDS_MAX 16
#define GRAMMAR_REASON_MAX 256

/* Cuts `line` into words in place; returns how many, -E2BIG for more than GRAMMAR_WORDS_MAX. */
int grammar_split(char *line, char *ret_words[GRAMMAR_WORDS_MAX]);

/* Reads the words behind the command's name: 0, or -EINVAL with a message in `ret_reason`. */
int grammar_parse(const char *name, const char *grammar, char *const words[], int count,
                  struct grammar_values *ret_values, char ret_reason[GRAMMAR_REASON_MAX]);

/* Describes each argument in a line. */
void grammar_describe(const char *grammar, void (*line)(void *context, const char *text),
                      void *context);
