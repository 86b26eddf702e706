/* SPDX-License-Identifier: Apache-2.0 */
/* A client that profiles itself: the server writes records of its work to a file of the client. */
#pragma once

struct session;
struct trace_file;

/* The last of a profile: the session's thread does not write to the file any more. NULL is allowed.
 */
void session_profile_close(struct session *session, struct trace_file *profile);
