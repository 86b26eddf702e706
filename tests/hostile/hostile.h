/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every hostile test stands on: one server and one honest witness for all tests of a program.
 * After each test comes the question whether both are still well.
 */
#pragma once

#include "server_process.h"
#include "unit.h"
#include "witness.h"

struct hostile {
    struct server_process server;
    struct witness witness;
};

/* The one of this program. */
extern struct hostile hostile;

int hostile_group_setup(void **state);
int hostile_group_teardown(void **state);

/* After each test: the server lives and the witness's sums are right. */
int hostile_check(void **state);

/* Attaches to the server, which has to take it. */
void hostile_attach(struct peer *peer);

/* Is the session still there? Its answer to an honest question says so. */
bool hostile_is_served(struct peer *peer);

/* The error that the commands so far have left, which the server still answers a question after. */
CUresult hostile_deferred(struct peer *peer);

/* The device's, as the witness is told. */
uint64_t free_memory(void);

/* Within some seconds: what a dead client held goes back bit by bit. */
bool free_memory_comes_back_to(uint64_t before);

#define HOSTILE_CASE(name) cmocka_unit_test_teardown(name, hostile_check)
#define HOSTILE_MAIN(tests) \
    cmocka_run_group_tests(tests, hostile_group_setup, hostile_group_teardown)
