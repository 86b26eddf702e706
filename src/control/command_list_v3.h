/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of MPS v3, each once: COMMAND_V3(id, "module verb", who, grammar, help). See
 * command_list.h for those of v2, and for who may give them.
 */
COMMAND_V3(server_list, "server list", ANY_USER, "[NAME] [--format=FORMAT]",
           "servers; that of a user is called uid_N")
COMMAND_V3(server_get, "server get", ANY_USER, "NAME FIELD",
           "name, uid, pid, status, pipe-directory, allowed-devices or timeslice-pct")
COMMAND_V3(server_create, "server create", OPERATORS,
           "[NAME] [--uid=UID] [--allowed-devices=DEVICES] [--locality-domains=BOOLEAN]",
           "define a server of its own socket; it starts for its first client")
COMMAND_V3(
    server_set, "server set", OPERATORS,
    "NAME [--uid=UID] [--pinned-memory-limit=SIZE] [--active-thread-percentage=SHARE] "
    "[--locality-domains=BOOLEAN] [--client-priority=PRIORITY] [--timeslice-pct=TIMESLICE] "
    "[--show-limit=SHOWN] [--lend=LENT] [--class=CLASS] [--oversubscribe=OVERSUBSCRIBED] "
    "[--evict-after=IDLE]",
    "limits of its later clients, its share of the time; another user, while it does not run")
COMMAND_V3(server_delete, "server delete", OPERATORS, "NAME [--force]",
           "remove it; --force: with its clients")

COMMAND_V3(namespace_create, "namespace create", OPERATORS, "NAMESPACE --server=NAME",
           "a group of the server's clients, with a socket and limits of its own")
COMMAND_V3(
    namespace_set, "namespace set", OPERATORS,
    "NAMESPACE --server=NAME [--pinned-memory-limit=SIZE] [--active-thread-percentage=SHARE] "
    "[--client-priority=PRIORITY] [--show-limit=SHOWN] [--lend=LENT] [--class=CLASS] "
    "[--oversubscribe=OVERSUBSCRIBED] [--evict-after=IDLE] [--cgroup=CGROUP] "
    "[--cgroup-depth=LEVELS]",
    "limits of its later clients; the control group whose programs it takes, and how deep")
COMMAND_V3(namespace_delete, "namespace delete", OPERATORS, "NAMESPACE --server=NAME [--force]",
           "remove it; --force: with its clients")
COMMAND_V3(namespace_list, "namespace list", ANY_USER,
           "[NAMESPACE] [--server=NAME] [--format=FORMAT]", "namespaces")
COMMAND_V3(namespace_get, "namespace get", ANY_USER, "NAMESPACE NAME FIELD",
           "name, server, server-status, pinned-memory-limit, active-thread-percentage, "
           "client-priority, pipe-directory, cgroup or cgroup-depth")

COMMAND_V3(client_list, "client list", ANY_USER, "[--server=NAME] [--all] [--format=FORMAT]",
           "clients of one server, or of all")
COMMAND_V3(client_get, "client get", ANY_USER, "CLIENT FIELD",
           "pid, server, device, pci-id, linux-ns, maws-ns or cmd")
COMMAND_V3(client_terminate, "client terminate", ANY_USER, "CLIENT",
           "end a client; prints a CUresult, 0 for success")

COMMAND_V3(device_list, "device list", ANY_USER, "[--server=NAME] [--format=FORMAT]",
           "devices that clients see")

COMMAND_V3(sm_partition_create, "sm-partition create", OPERATORS,
           "PARTITION --server=NAME --device=DEVICE --chunks=CHUNKS [--include-remainder=BOOLEAN] "
           "[--shareable=LENT] [--max-chunks=MOST]",
           "cut a part of a server's device; from then on each of its clients has to name one")
COMMAND_V3(sm_partition_delete, "sm-partition delete", OPERATORS,
           "PARTITION --server=NAME --device=DEVICE", "give it back")
COMMAND_V3(
    sm_partition_list, "sm-partition list", ANY_USER,
    "[--server=NAME] [--device=DEVICE] [--all] [--format=FORMAT]",
    "partitions, and what is left of their devices; --all: of servers without partitions, too")

COMMAND_V3(feature_describe, "feature describe", ANY_USER, "[FEATURE] [--format=FORMAT]",
           "what can be switched on and off")
COMMAND_V3(feature_enable, "feature enable", OPERATORS, "FEATURE", "switch a feature on")
COMMAND_V3(feature_disable, "feature disable", OPERATORS, "FEATURE", "switch a feature off")
COMMAND_V3(memacct_list, "memacct list", ANY_USER, "[--server=NAME] [--format=FORMAT]",
           "device memory that clients hold, have held at most, and may hold; bytes in csv")
COMMAND_V3(memacct_describe, "memacct describe", ANY_USER, "[--format=FORMAT]",
           "settings of the memory accounting")
COMMAND_V3(memacct_set, "memacct set", OPERATORS, "--audit_log=BOOLEAN",
           "audit_log: whether control.log says of each client that leaves how much memory it held")
COMMAND_V3(context_share_describe, "context-share describe", ANY_USER, "",
           "says that it is not there")
COMMAND_V3(context_share_set, "context-share set", OPERATORS, "--default_socket=OBJECT",
           "says that it is not there")
