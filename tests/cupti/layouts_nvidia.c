/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's side of the comparison. */
#include <cupti.h>
#include <stddef.h>

#include "layout_list.h"

#define RECORD(own, nvidia) {#nvidia, sizeof(nvidia)},
#define MEMBER(own, member, nvidia, its) {#nvidia "." #its, offsetof(nvidia, its)},
#define VALUE(own, nvidia) {#nvidia, (unsigned long)nvidia},

const struct number nvidia_numbers[] = {NUMBERS};
const unsigned nvidia_count = sizeof(nvidia_numbers) / sizeof(*nvidia_numbers);
