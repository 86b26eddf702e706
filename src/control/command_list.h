/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of MPS v2, each once: COMMAND(name, who, grammar, help). The daemon makes its table
 * of handlers from this list, and the shell its help and its completion.
 *
 *     ANY_USER  concerns servers: a user reaches the servers of that user, operators reach all
 *     OPERATORS concerns all users: for root and the daemon's own user
 */

/* Servers. */
COMMAND(get_server_list, ANY_USER, "", "process ids of the servers")
COMMAND(get_server_status, ANY_USER, "SERVER", "its state: INITIALIZING, ACTIVE or FAULT")
COMMAND(start_server, ANY_USER, "-uid UID [-mlopart]", "start the server of a user")
COMMAND(shutdown_server, ANY_USER, "SERVER [-f]", "end it when its last client leaves; -f: now")
COMMAND(device_query, ANY_USER, "[SERVER] [--csv]", "devices that clients see")
COMMAND(quit, OPERATORS, "[-t SECONDS]",
        "end the daemon when all clients have left, or after a while")

/* Funnel's own. */
COMMAND(reload, OPERATORS, "",
        "become the release that is installed, and read the configuration file again")

/* Clients. */
COMMAND(get_client_list, ANY_USER, "SERVER", "process ids of its clients")
COMMAND(get_device_client_list, ANY_USER, "[SERVER]", "the same for each device")
COMMAND(ps, ANY_USER, "[-p CLIENT]", "clients with their server, device and command line")
COMMAND(terminate_client, ANY_USER, "SERVER CLIENT",
        "end a client; prints a CUresult, 0 for success")

/* Funnel's own: the memory of a program in the host's instead of the device's. */
COMMAND(suspend, ANY_USER, "CLIENT",
        "move its device memory to the host when it is idle; it stands still from then on")
COMMAND(evict, ANY_USER, "CLIENT",
        "move its device memory to the host when it is idle; it returns for its next command")
COMMAND(checkpoint, ANY_USER, "CLIENT",
        "write its device memory to the file that comes along when it is idle; it goes on")
COMMAND(detach, ANY_USER, "CLIENT",
        "move its device memory to the file that comes along; its next command attaches it again")
COMMAND(lock, ANY_USER, "CLIENT",
        "keep it from its next command when it is idle, with its device memory where it is")
COMMAND(resume, ANY_USER, "CLIENT", "move the memory back; the program goes on")
COMMAND(migrate, ANY_USER, "CLIENT --device DEVICE",
        "move it to another device of its server, of the same model, at its next idle point")

/* Static partitions: only in a daemon that was started with -S. */
COMMAND(sm_partition, OPERATORS, "VERB DEVICE OBJECT",
        "add DEVICE CHUNKS: cut a partition; rm DEVICE PARTITION: give it back")
COMMAND(lspart, ANY_USER, "", "devices and their partitions")

/* Funnel's own: limits of clients that run, and of all that come from a user or a group. */
COMMAND(
    limit, OPERATORS,
    "[--client CLIENT] [--user UID] [--group GROUP] [--sm QUOTA] [--sms SMS] "
    "[--memory CEILING] [--joint-memory JOINT] [--device DEVICE] [--priority PRIORITY] [--class "
    "CLASS] "
    "[--oversubscribe OVERSUBSCRIBED] [--evict-after IDLE] [--quota CHANGES]",
    "change limits of running clients; of a user or a group also those of later ones; or quotas "
    "of all")

/* Funnel's own: `funnel trace` reads the files that come with the answer. */
COMMAND(trace, ANY_USER, "SECONDS [--client CLIENT]",
        "write down for a while what servers do; funnel trace makes a time line of it")

/* Limits. */
COMMAND(get_default_active_thread_percentage, ANY_USER, "", "share of the SMs for later servers")
COMMAND(set_default_active_thread_percentage, OPERATORS, "PERCENT", "set it")
COMMAND(get_active_thread_percentage, ANY_USER, "SERVER", "share for a server's later clients")
COMMAND(set_active_thread_percentage, OPERATORS, "SERVER PERCENT", "set it")
COMMAND(get_default_device_pinned_mem_limit, ANY_USER, "DEVICE", "memory limit for later servers")
COMMAND(set_default_device_pinned_mem_limit, OPERATORS, "DEVICE CEILING",
        "set it, to 2G or 512M; none lifts it")
COMMAND(get_device_pinned_mem_limit, ANY_USER, "SERVER DEVICE",
        "limit for a server's later clients")
COMMAND(set_device_pinned_mem_limit, OPERATORS, "SERVER DEVICE CEILING", "set it")
COMMAND(get_default_client_priority, ANY_USER, "", "priority of later clients")
COMMAND(set_default_client_priority, OPERATORS, "[PRIORITY]", "set it: 0 normal, 1 below normal")
