/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of MPS v3 that are there, each once: VERB(module, verb, who, grammar, help). See
 * command_list.h for those of v2, and for who may give them.
 */
VERB(server, list, ANYBODY, "[NAME] [--format=FORMAT]", "servers; that of a user is called uid_N")
VERB(server, get, ANYBODY, "NAME FIELD", "name, uid, pid, status, pipe-directory or allowed-devices")
VERB(server, create, OPERATORS,
     "[NAME] [--uid=UID] [--allowed-devices=DEVICES] [--locality-domains=BOOLEAN]",
     "define a server of its own socket; it starts for its first client")
VERB(server, set, OPERATORS,
     "NAME [--uid=UID] [--pinned-memory-limit=SIZE] [--active-thread-percentage=PERCENT] "
     "[--locality-domains=BOOLEAN] [--client-priority=PRIORITY]",
     "limits of its later clients")
VERB(server, delete, OPERATORS, "NAME [--force]", "remove it; --force: with its clients")
VERB(namespace, create, OPERATORS, "NAMESPACE --server=NAME",
     "a group of the server's clients, with a socket and limits of its own")
VERB(namespace, set, OPERATORS,
     "NAMESPACE --server=NAME [--pinned-memory-limit=SIZE] [--active-thread-percentage=PERCENT] "
     "[--client-priority=PRIORITY]",
     "limits of its later clients")
VERB(namespace, delete, OPERATORS, "NAMESPACE --server=NAME [--force]",
     "remove it; --force: with its clients")
VERB(namespace, list, ANYBODY, "[NAMESPACE] [--server=NAME] [--format=FORMAT]", "namespaces")
VERB(namespace, get, ANYBODY, "NAMESPACE NAME FIELD",
     "name, server, server-status, pinned-memory-limit, active-thread-percentage, "
     "client-priority or pipe-directory")
VERB(client, list, ANYBODY, "[--server=NAME] [--all] [--format=FORMAT]", "clients of one server, or of all")
VERB(client, get, ANYBODY, "CLIENT FIELD", "pid, server, device, pci-id, linux-ns, maws-ns or cmd")
VERB(client, terminate, ANYBODY, "CLIENT", "end a client; prints a CUresult, 0 for success")
VERB(device, list, ANYBODY, "[--server=NAME] [--format=FORMAT]", "devices that clients see")
