/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where pages are, against a model in which every page has a value on each side. After any sequence
 * of accesses, copies and work, a side reads the value that was written last.
 */
#include "unit.h"

#include <string.h>

#include "residence.h"

#define PAGES 3000u

static struct residence_run all(const struct residence *residence)
{
    return (struct residence_run){0, residence->count};
}

static void a_sequence_of_touches_grows(void **state)
{
    struct residence residence;
    uint32_t page = 0, steps = 0;

    (void)state;
    assert_int_equal(residence_init(&residence, 4096 * RESIDENCE_PAGE), 0);
    while (page < residence.count) {
        struct residence_step step = residence_fault(&residence, page, true);

        assert_int_equal(step.kind, STEP_CREATE);
        assert_int_equal(step.run.first, page);
        page += step.run.count;
        steps++;
    }
    assert_true(steps < 12);
    residence_fini(&residence);
}

/* Threads that each go through a part do not disturb each other. */
static void several_sequences_grow(void **state)
{
    struct residence residence;
    uint32_t next[8], steps = 0, open = 8;

    (void)state;
    assert_int_equal(residence_init(&residence, 8 * 4096ull * RESIDENCE_PAGE), 0);
    residence_leave(&residence, all(&residence));
    for (uint32_t i = 0; i < 8; i++)
        next[i] = i * 4096;
    for (; open > 0; steps++) {
        uint32_t part = steps % 8;
        struct residence_step step;

        if (next[part] == (part + 1) * 4096)
            continue;
        step = residence_fault(&residence, next[part], false);
        next[part] += step.run.count;
        if (next[part] > (part + 1) * 4096)
            next[part] = (part + 1) * 4096;
        open -= next[part] == (part + 1) * 4096;
    }
    assert_true(steps < 8 * 12);
    residence_fini(&residence);
}

static void a_single_touch_moves_little(void **state)
{
    struct residence residence;
    struct residence_step step;

    (void)state;
    assert_int_equal(residence_init(&residence, 4096 * RESIDENCE_PAGE), 0);
    residence_leave(&residence, all(&residence));
    step = residence_fault(&residence, 1003, false);
    assert_int_equal(step.kind, STEP_FETCH);
    assert_int_equal(step.run.first, 992);
    assert_int_equal(step.run.count, 16);
    assert_int_equal(residence_fault(&residence, 1000, false).kind, STEP_AWAIT);
    assert_true(residence_arrived(&residence, step.run, false));
    assert_int_equal(residence_fault(&residence, 1000, false).kind, STEP_SHOW);
    assert_int_equal(residence_fault(&residence, 1000, true).kind, STEP_ALLOW);
    residence_fini(&residence);
}

static void a_page_that_the_device_takes_back_does_not_arrive(void **state)
{
    struct residence residence;
    struct residence_step step;

    (void)state;
    assert_int_equal(residence_init(&residence, 64 * RESIDENCE_PAGE), 0);
    residence_leave(&residence, all(&residence));
    step = residence_fault(&residence, 5, true);
    residence_leave(&residence, all(&residence));
    assert_false(residence_arrived(&residence, step.run, true));
    assert_int_equal(residence_fault(&residence, 5, true).kind, STEP_FETCH);
    residence_fini(&residence);
}

/* ---- the model ---- */

struct model {
    struct residence residence;
    uint32_t truth[PAGES];               /* what was written last */
    uint32_t host[PAGES], device[PAGES]; /* what each side's memory holds */
    bool shown[PAGES], writable[PAGES];
    uint32_t writes;
};

static void serve(struct model *model, uint32_t page, bool writes)
{
    struct residence_step step = residence_fault(&model->residence, page, writes);
    uint32_t end = step.run.first + step.run.count;

    assert_true(page >= step.run.first && page < end && end <= PAGES);
    if (step.kind == STEP_FETCH)
        memcpy(model->host + step.run.first, model->device + step.run.first,
               step.run.count * sizeof(uint32_t));
    if (step.kind == STEP_FETCH || step.kind == STEP_AWAIT)
        assert_true(residence_arrived(&model->residence, step.run, step.writable));
    for (uint32_t i = step.run.first; i < end; i++) {
        model->shown[i] = true;
        model->writable[i] = step.writable;
    }
}

static void fault(struct model *model, uint32_t page, bool writes)
{
    for (unsigned i = 0; i < 3 && !(writes ? model->writable[page] : model->shown[page]); i++)
        serve(model, page, writes);
    assert_true(writes ? model->writable[page] : model->shown[page]);
    assert_int_equal(model->host[page], model->truth[page]);
    if (writes)
        model->host[page] = model->truth[page] = ++model->writes;
}

/* As managed_move.c does it: hide, send what the host has written, leave. */
static void give(struct model *model, struct residence_run run)
{
    struct residence_run at = {run.first, 0};

    while (residence_next(&model->residence, run, PAGE_HOST, &at))
        memcpy(model->device + at.first, model->host + at.first, at.count * sizeof(uint32_t));
    residence_leave(&model->residence, run);
    memset(model->shown + run.first, 0, run.count);
    memset(model->writable + run.first, 0, run.count);
}

static void work(struct model *model, struct residence_run run)
{
    for (uint32_t i = run.first; i < run.first + run.count; i++) {
        assert_int_equal(model->device[i], model->truth[i]);
        model->device[i] = model->truth[i] = ++model->writes;
    }
}

static void launch(struct model *model)
{
    struct residence_run shown = residence_shown(&model->residence);

    give(model, model->residence.has_new ? all(&model->residence) : shown);
    for (uint32_t i = 0; i < PAGES; i++)
        assert_false(model->shown[i]);
    work(model, (struct residence_run){0, PAGES});
}

static struct residence_run random_run(uint64_t *random)
{
    uint32_t first = unit_random(random) % PAGES, count = unit_random(random) % 300 + 1;

    return (struct residence_run){first, count < PAGES - first ? count : PAGES - first};
}

static void prefetch_down(struct model *model, struct residence_run run)
{
    struct residence_run at = {run.first, 0};

    while (residence_next(&model->residence, run, PAGE_DEVICE, &at)) {
        memcpy(model->host + at.first, model->device + at.first, at.count * sizeof(uint32_t));
        residence_come(&model->residence, at);
    }
}

static void both_sides_read_what_was_written_last(void **state)
{
    static struct model model;
    uint64_t random = 7;

    (void)state;
    for (unsigned round = 0; round < 30; round++) {
        memset(&model, 0, sizeof(model));
        assert_int_equal(residence_init(&model.residence, PAGES * RESIDENCE_PAGE - 100), 0);
        for (unsigned i = 0; i < 300; i++) {
            struct residence_run run = random_run(&random);
            unsigned what = unit_random(&random) % 16;

            for (uint32_t p = 0; what < 10 && p < run.count; p += unit_random(&random) % 4 + 1)
                fault(&model, run.first + p, unit_random(&random) % 2);
            if (what == 10 || what == 11)
                launch(&model);
            if (what == 12 || what == 13) {
                give(&model, run);
                work(&model, run);
            }
            if (what >= 14)
                prefetch_down(&model, run);
        }
        residence_fini(&model.residence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sequence_of_touches_grows),
        cmocka_unit_test(several_sequences_grow),
        cmocka_unit_test(a_single_touch_moves_little),
        cmocka_unit_test(a_page_that_the_device_takes_back_does_not_arrive),
        cmocka_unit_test(both_sides_read_what_was_written_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
