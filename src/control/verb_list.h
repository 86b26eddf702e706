/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of MPS v3 that are there, each once: VERB(module, verb, grammar, help). Whoever asks
 * reaches the servers of his own user, operators reach all. See command_list.h for those of v2.
 */
VERB(server, list, "[NAME] [--format=FORMAT]", "servers; one a user, called uid_N")
VERB(server, get, "NAME FIELD", "name, uid, pid, status, pipe-directory or allowed-devices")
VERB(client, list, "[--server=NAME] [--all] [--format=FORMAT]", "clients of one server, or of all")
VERB(client, get, "CLIENT FIELD", "pid, server, device, pci-id, linux-ns, maws-ns or cmd")
VERB(client, terminate, "CLIENT", "end a client; prints a CUresult, 0 for success")
VERB(device, list, "[--server=NAME] [--format=FORMAT]", "devices that clients see")
