/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of cuIpc belong to a server, so programs that share memory or events by them have to be in
 * one lane. One that has a name from another lane asks for a move there before it opens it. The
 * program that has given the name out cannot move: the name would end with its session.
 *
 * A program moves itself alone, and to no lane where it could not be otherwise. It stays in its
 * service and its domain of fate. A class that is critical or batch keeps it in its lane, and so
 * does one that an operator has set while the program ran. It stays in the lane that it comes to.
 */
#pragma once

#include <sys/types.h>

struct client_record;

/* The program has a name that the server with this process ID knows, as it says. It gets an order,
 * or is told that there is none. */
void lane_join_ask(struct client_record *record, pid_t owner);
