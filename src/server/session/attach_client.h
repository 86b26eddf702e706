/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of the handshake (wire/attach.h).
 */
#pragma once

#include "session.h"

/* On the session's thread: true once the client has accepted a window. Otherwise the client has
 * received the reason, or is gone. */
bool attach_client(struct session *session);

/* Sends a client the reason of its refusal. */
void attach_refuse(int socket, CUresult status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
