/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a memory operand to addresses in this process, checked. Compiled for each ISA variant.
 */
#pragma once

#include "isa.h"
#include "warp_state.h"

#define translate ISA_NAME(translate)
#define translate_given ISA_NAME(translate_given)
#define translate_span ISA_NAME(translate_span)
#define translate_readable ISA_NAME(translate_readable)
enum translation {
    TRANSLATION_FAULT,
    TRANSLATION_GLOBAL,
    TRANSLATION_OWN, /* shared or local: no other host thread can access it */
};

/*
 * Fills warp->address with where each active lane's `size` bytes are in this process, checked;
 * inactive lanes get the address of some active one. `align` is that of one element.
 */
enum translation translate(struct warp *warp, const struct insn *insn, unsigned size,
                           unsigned align, unsigned access);
/* The same for addresses that are in warp->address already, for every lane. */
enum translation translate_given(struct warp *warp, const struct insn *insn, unsigned size,
                                 unsigned align, unsigned access);
/* Whether each access of `size` bytes from address low to high is known to be in bounds. *ret_base
 * is what then leads from addresses to this process's. Where it is false, they may be right as
 * well. */
bool translate_span(const struct warp *warp, const struct insn *insn, uint64_t low, uint64_t high,
                    unsigned size, unsigned access, uint64_t *ret_base);
/* One address of a lane, for strings and the like: how many bytes from there on may be read. */
uint64_t translate_readable(struct warp *warp, uint64_t address);
