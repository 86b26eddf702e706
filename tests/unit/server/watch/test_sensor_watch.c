/* SPDX-License-Identifier: Apache-2.0 */
/* With the library of tests/unit/driver/fake_nvml.c: FOLDER BEHAVIOR, which is that of FAKE_NVML.
 * The thread of a watch stays, so each behavior has a process of its own. */
#include "sensor_watch.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "text.h"
#include "unit.h"

#define WAIT_NS (60 * NS_PER_SEC)
#define AGE_NS (3600 * NS_PER_SEC)

static char driver_path[4096];
static const char *const bus_ids[] = {"0000:01:00.0", "0000:02:00.0", "0000:77:00.0"};

/* It lives as long as the process; a thread that has ended does not keep it any more. */
static struct sensor_watch *volatile started; /* else the compiler drops it */

static struct sensor_watch *start(unsigned devices)
{
    struct sensor_watch *watch = started = sensor_watch_start(driver_path, bus_ids, devices);

    assert_non_null(watch);
    return watch;
}

static struct server_sensors get(struct sensor_watch *watch, unsigned device)
{
    struct server_sensors sensors;

    sensor_watch_get(watch, device, clock_ns(), &sensors);
    return sensors;
}

/* The values of all devices come one after the other. */
static void wait_for(struct sensor_watch *watch, unsigned device, enum sensor sensor)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    uint64_t deadline = clock_ns() + WAIT_NS;

    while (get(watch, device).value[sensor] == SENSOR_UNKNOWN && clock_ns() < deadline)
        nanosleep(&pause, NULL);
}

static void assert_unknown(struct server_sensors sensors)
{
    for (unsigned i = 0; i < SENSOR_COUNT; i++)
        assert_true(sensors.value[i] == SENSOR_UNKNOWN);
}

static void test_values(void **state)
{
    static const uint64_t expected[SENSOR_COUNT] = {320500, 700000, 51,   87,
                                                    12,     1980,   2619, 16ull << 30};
    struct sensor_watch *watch = start(2);

    wait_for(watch, 1, SENSOR_TEMPERATURE);
    struct server_sensors first = get(watch, 0), second = get(watch, 1), later;
    assert_memory_equal(first.value, expected, sizeof(expected));
    assert_int_equal(second.value[SENSOR_TEMPERATURE], 30);
    second.value[SENSOR_TEMPERATURE] = SENSOR_UNKNOWN;
    assert_unknown(second);
    sensor_watch_get(watch, 0, clock_ns() + AGE_NS, &later);
    assert_unknown(later);
    assert_unknown(get(watch, 99));
    assert_unknown(get(NULL, 0));
}

static void test_nonsense(void **state)
{
    struct sensor_watch *watch = start(2);

    wait_for(watch, 1, SENSOR_TEMPERATURE);
    assert_int_equal(get(watch, 1).value[SENSOR_TEMPERATURE], 30);
    assert_unknown(get(watch, 0));
}

/* The first device has its values already. */
static void test_hang(void **state)
{
    struct sensor_watch *watch = start(2);

    wait_for(watch, 0, SENSOR_TEMPERATURE);
    assert_int_equal(get(watch, 0).value[SENSOR_TEMPERATURE], 51);
    assert_unknown(get(watch, 1));
}

/* One line of the log, when the library has been asked. */
static void expect_line(const char *text)
{
    char line[512];
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    log_open(ends[1], "Test");
    struct sensor_watch *watch = start(3);
    struct pollfd readable = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&readable, 1, (int)(WAIT_NS / NS_PER_MS)), 1);
    ssize_t size = read(ends[0], line, sizeof(line) - 1);
    assert_true(size > 0);
    line[size] = '\0';
    assert_non_null(strstr(line, text));
    assert_ptr_equal(strchr(line, '\n'), line + size - 1);
    assert_unknown(get(watch, 0));
}

static void test_dead(void **state)
{
    expect_line("cannot start");
}

static void test_broken(void **state)
{
    expect_line("tells neither power nor temperature");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_nonsense), cmocka_unit_test(test_hang),
        cmocka_unit_test(test_dead),   cmocka_unit_test(test_broken),
    };

    if (argc < 3 || setenv("FAKE_NVML", argv[2], 1))
        return 2;
    text_format(driver_path, sizeof(driver_path), "%s/libcuda.so.1", argv[1]);
    for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++)
        if (!strcmp(tests[i].name + strlen("test_"), argv[2]))
            return _cmocka_run_group_tests(argv[2], &tests[i], 1, NULL, NULL);
    return 2;
}
