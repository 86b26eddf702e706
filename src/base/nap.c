/* SPDX-License-Identifier: Apache-2.0 */
/* See nap.h. */
#include "nap.h"

#include <sys/prctl.h>

#include "clock.h"
#include "spin.h"
#include "switch.h"

#define SHORTEST_NS (30 * NS_PER_US)
#define PART_OF_WAIT 128
#define CROWDED_NS NS_PER_MS /* so late nobody is who has a CPU to run on */
#define PUNCTUAL_NS 1        /* 0 would mean the default */

static bool is_switched_off(void)
{
    static int known;

    return switch_is_on_once(&known, "FUNNEL_NO_NAPS");
}

struct nap nap_begin(void)
{
    struct nap nap = {.naps = spin_is_cheap() && !is_switched_off()};

    if (!nap.naps)
        return nap;
    nap.began = clock_ns();
    nap.slack = prctl(PR_GET_TIMERSLACK);
    if (nap.slack > 0)
        prctl(PR_SET_TIMERSLACK, PUNCTUAL_NS);
    return nap;
}

uint64_t nap_next(struct nap *nap, uint64_t longest)
{
    uint64_t now;

    if (!nap->naps)
        return longest;
    now = clock_ns();
    if (nap->woken && now - nap->woken > nap->length + CROWDED_NS) {
        nap->naps = false;
        return longest;
    }
    nap->woken = now;
    nap->length = (now - nap->began) / PART_OF_WAIT;
    if (nap->length < SHORTEST_NS)
        nap->length = SHORTEST_NS;
    if (nap->length > longest)
        nap->length = longest;
    return nap->length;
}

void nap_end(struct nap *nap)
{
    if (nap->slack > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)nap->slack);
}
