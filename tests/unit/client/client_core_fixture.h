/* SPDX-License-Identifier: Apache-2.0 */
/* A client with one device and nothing but what src/client/core needs: no server answers. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "client_context.h"
#include "client_entry.h"
#include "client_thread.h"
#include "unit.h"

/* A client and its tables are never freed (client.h), so there is nothing for LeakSanitizer to
 * find. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

static struct {
    struct device_record record;
} core_fixture;

static inline int core_fixture_setup(void **state)
{
    static uint32_t generation;

    memset(&core_fixture, 0, sizeof(core_fixture));
    client = calloc(1, sizeof(*client));
    client->channel.region = calloc(1, sizeof(*client->channel.region));
    client->generation = ++generation;
    client->device_count = 1;
    client->devices[0].record = &core_fixture.record;
    pthread_mutex_init(&client->lock, NULL);
    list_init(&client->contexts);
    assert_int_equal(handles_init(&client->handles, 100), 0);
    assert_int_equal(context_init_primaries(), 0);
    *state = &core_fixture;
    return 0;
}

static inline int core_fixture_teardown(void **state)
{
    free(client->channel.region);
    free(client);
    client = NULL;
    return 0;
}

#define CORE_CASE(name) \
    cmocka_unit_test_setup_teardown(name, core_fixture_setup, core_fixture_teardown)
