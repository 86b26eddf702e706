/* SPDX-License-Identifier: Apache-2.0 */
/* Tells a service manager how the daemon does (the protocol of sd_notify(3), which is one
 * datagram). */
#pragma once

/* `state` as in "READY=1". Does nothing without NOTIFY_SOCKET. */
void notify(const char *state);
