/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for people: to the server's log, to FUNNEL_LOG's file, and the tracer's lines. Never on
 * the program's own terminal. From any thread. */
#pragma once

/* Opens what FUNNEL_LOG and FUNNEL_TRACE name. Called before the first attach. */
void client_log_open(void);

/* To the server's log, or to FUNNEL_LOG's file where there is no server. */
void client_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* To FUNNEL_LOG's file, for when there is no server to send it to. */
void client_log_to_file(const char *format, ...) __attribute__((format(printf, 1, 2)));
