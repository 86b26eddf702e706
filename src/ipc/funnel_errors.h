/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors that Funnel gives on its own account, with their reasons. The daemon refuses a program
 * with one, a server ends a client with one, and a client without a daemon returns one. Numbers and
 * names are CUDA's (cuda_result.h), which the daemon does not know. All other errors come from the
 * driver, or mean the same as the driver's.
 */
#pragma once

/* X(name, number, reason, remedy): `funnel why` prints reason and remedy. */
#define FUNNEL_ERRORS(X)                                                                           \
    X(LAUNCH_TIMEOUT, 702,                                                                         \
      "A kernel ran longer than is allowed, or did not end after its client was ended.",           \
      "FUNNEL_SOFT_TIMEOUT limits kernels of the software GPU; a display's watchdog those of "     \
      "others.")                                                                                   \
    X(NOT_PERMITTED, 800, "The call is not permitted here, or for this user.",                     \
      "In host functions no CUDA call is; limits are for operators.")                              \
    X(MPS_CONNECTION_FAILED, 805,                                                                  \
      "The program could not reach a daemon or its server, or was refused: no daemon at its pipe " \
      "directory, a user that it does not serve, another release, or limits that cannot be met.",  \
      "funnel status shows the daemon; funnel log has the reason; funnel start starts one.")       \
    X(MPS_RPC_FAILURE, 806,                                                                        \
      "The connection to the server broke: an operator ended it (funnel stop --force, or the "     \
      "time of funnel stop --timeout was over), or it crashed.",                                   \
      "funnel log --daemon and funnel log --server tell how it ended. Start the program again.")   \
    X(MPS_SERVER_NOT_READY, 807,                                                                   \
      "The server takes no new clients: it starts, ends, serves another user, or recovers from a " \
      "fault.",                                                                                    \
      "Start the program again in a moment; funnel servers shows the state.")                      \
    X(MPS_MAX_CLIENTS_REACHED, 808, "The server has as many clients as it can take.",              \
      "funnel servers shows how many; FUNNEL_MAX_CLIENTS and named servers allow more.")           \
    X(MPS_MAX_CONNECTIONS_REACHED, 809,                                                            \
      "The daemon, a server or a quota of the user allows no more connections or servers.",        \
      "funnel limits shows the quotas; funnel limit --quota NAME=VALUE changes them.")             \
    X(MPS_CLIENT_TERMINATED, 810,                                                                  \
      "An operator took the GPU from the program (funnel terminate), one of its streams kept "     \
      "calls of other programs away for longer than the quota wait-seconds, or the server could "  \
      "not read what the program sent.",                                                           \
      "funnel log --daemon names the user who gave the order, funnel log --server other reasons.")

#define FUNNEL_ERROR_NUMBER(name, number, reason, remedy) FUNNEL_ERROR_##name = (number),
enum funnel_error { FUNNEL_ERRORS(FUNNEL_ERROR_NUMBER) };
#undef FUNNEL_ERROR_NUMBER
