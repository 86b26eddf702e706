/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences for people: to the server's log, to FUNNEL_LOG's file, and the tracer's lines. */
#ifndef FUNNEL_CLIENT_LOG_H
#define FUNNEL_CLIENT_LOG_H

/* Opens what FUNNEL_LOG and FUNNEL_TRACE name. Called before the first attach. */
void client_log_open(void);

/* For when there is no server to tell. */
void client_log_to_file(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
