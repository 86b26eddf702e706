/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for what schedulers, container engines and systemd run in a control group of its own:
 *
 *     pod_0f1e2d3c4b5a        a pod of Kubernetes: the first 12 digits of its UID
 *     job_123                 a job of Slurm
 *     container_9f8e7d6c5b4a  a container of docker, podman and others: the short form of its ID
 *     scope_NAME              a scope of a user's systemd
 *
 * A pod counts more than a job, that more than a container, and a scope least, wherever in the path
 * they are. So the containers of a pod are one group.
 */
#pragma once

#include "hello.h"

/* `groups` is as control_groups_read() has it. The name has letters, digits and _ only; it is ""
 * where nothing is recognized. */
void control_groups_name(const char *groups, char ret_name[HELLO_GROUP_MAX]);

/* The short form of the container's ID, also where the container belongs to a pod or a job; ""
 * where there is none. */
void control_groups_container(const char *groups, char ret_id[HELLO_GROUP_MAX]);
