/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of MPS v3, each once: VERB(id, "module verb", who, grammar, help). See
 * command_list.h for those of v2, and for who may give them.
 */
VERB(server_list, "server list", ANYBODY, "[NAME] [--format=FORMAT]",
     "servers; that of a user is called uid_N")
VERB(server_get, "server get", ANYBODY, "NAME FIELD",
     "name, uid, pid, status, pipe-directory or allowed-devices")
VERB(server_create, "server create", OPERATORS,
     "[NAME] [--uid=UID] [--allowed-devices=DEVICES] [--locality-domains=BOOLEAN]",
     "define a server of its own socket; it starts for its first client")
VERB(server_set, "server set", OPERATORS,
     "NAME [--uid=UID] [--pinned-memory-limit=SIZE] [--active-thread-percentage=PERCENT] "
     "[--locality-domains=BOOLEAN] [--client-priority=PRIORITY]",
     "limits of its later clients; another user, while it does not run")
VERB(server_delete, "server delete", OPERATORS, "NAME [--force]",
     "remove it; --force: with its clients")

VERB(namespace_create, "namespace create", OPERATORS, "NAMESPACE --server=NAME",
     "a group of the server's clients, with a socket and limits of its own")
VERB(namespace_set, "namespace set", OPERATORS,
     "NAMESPACE --server=NAME [--pinned-memory-limit=SIZE] [--active-thread-percentage=PERCENT] "
     "[--client-priority=PRIORITY]",
     "limits of its later clients")
VERB(namespace_delete, "namespace delete", OPERATORS, "NAMESPACE --server=NAME [--force]",
     "remove it; --force: with its clients")
VERB(namespace_list, "namespace list", ANYBODY, "[NAMESPACE] [--server=NAME] [--format=FORMAT]",
     "namespaces")
VERB(namespace_get, "namespace get", ANYBODY, "NAMESPACE NAME FIELD",
     "name, server, server-status, pinned-memory-limit, active-thread-percentage, "
     "client-priority or pipe-directory")

VERB(client_list, "client list", ANYBODY, "[--server=NAME] [--all] [--format=FORMAT]",
     "clients of one server, or of all")
VERB(client_get, "client get", ANYBODY, "CLIENT FIELD",
     "pid, server, device, pci-id, linux-ns, maws-ns or cmd")
VERB(client_terminate, "client terminate", ANYBODY, "CLIENT",
     "end a client; prints a CUresult, 0 for success")

VERB(device_list, "device list", ANYBODY, "[--server=NAME] [--format=FORMAT]",
     "devices that clients see")

VERB(sm_partition_create, "sm-partition create", OPERATORS,
     "PARTITION --server=NAME --device=DEVICE --chunks=CHUNKS [--include-remainder=BOOLEAN]",
     "cut a part of a server's device; from then on each of its clients has to name one")
VERB(sm_partition_delete, "sm-partition delete", OPERATORS,
     "PARTITION --server=NAME --device=DEVICE", "give it back")
VERB(sm_partition_list, "sm-partition list", ANYBODY,
     "[--server=NAME] [--device=DEVICE] [--all] [--format=FORMAT]",
     "partitions, and what is left of their devices; --all: of servers without partitions, too")

VERB(feature_describe, "feature describe", ANYBODY, "[FEATURE] [--format=FORMAT]",
     "what can be switched on and off")
VERB(feature_enable, "feature enable", OPERATORS, "FEATURE", "switch a feature on")
VERB(feature_disable, "feature disable", OPERATORS, "FEATURE", "switch a feature off")
VERB(memacct_list, "memacct list", ANYBODY, "[--server=NAME] [--format=FORMAT]",
     "device memory that clients hold, have held at most, and may hold; bytes in csv")
VERB(memacct_describe, "memacct describe", ANYBODY, "[--format=FORMAT]",
     "settings of the memory accounting")
VERB(memacct_set, "memacct set", OPERATORS, "--audit_log=BOOLEAN",
     "audit_log: whether control.log says of each client that leaves how much memory it held")
VERB(context_share_describe, "context-share describe", ANYBODY, "", "says that it is not there")
VERB(context_share_set, "context-share set", OPERATORS, "--default_socket=OBJECT",
     "says that it is not there")
