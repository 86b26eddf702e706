/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for people: to the server's log, to the user's file (FUNNEL_LOG's, else that of
 * user_log.h), and the tracer's lines. On the program's standard error only if FUNNEL_VERBOSE is
 * set. From any thread. */
#pragma once

/* Reads FUNNEL_LOG, FUNNEL_VERBOSE and FUNNEL_TRACE. Called before the first attach. */
void client_log_open(void);

/* Traces calls from now on for FUNNEL_TRACE, or a profiler (client_profile.h), or not at all. */
void client_log_follow_profile(void);

/* To the user's file, and to the server's log where there is a server. */
void client_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* To the user's file alone. `error` is what the program receives, or CUDA_SUCCESS. */
void client_log_to_file(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
