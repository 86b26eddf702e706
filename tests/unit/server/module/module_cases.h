/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the module cache share: images, and the cache of the fixture's server. */
#pragma once

#include "fake_driver.h"
#include "module_cache.h"

#define PTX ".version 8.0\n.target sm_90\n.address_size 64\n"
#define ENTRY ".visible .entry k(.param .u64 p)\n{\nld.global.u32 %r1, [%rd1];\nret;\n}\n"

/* An image without variables, and one with a variable. */
#define PLAIN PTX ENTRY
#define VARIABLE PTX ".visible .global .align 4 .u32 counter = 5;\n" ENTRY

#define MODULE_CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

/* The one variable of every library, and how often the driver was asked to write to it. */
extern uint32_t case_counter;
extern unsigned case_writes;

struct module_cache *case_cache(struct fixture *fixture);

/* Asks the cache for a library, as a client does. */
CUresult case_try_get(struct fixture *fixture, const char *text, uint64_t option,
                      struct cached **ret_cached);
struct cached *case_get(struct fixture *fixture, const char *text);

/* As where a client asks for a kernel. */
void case_query(struct fixture *fixture, struct cached *cached);

/* What the cache gives up is unloaded when no client is busy. Returns what the driver was asked. */
const char *case_unload(struct module_cache *cache);

/* From here on the driver finds the variable, which is 5. */
void case_have_a_counter(void);
