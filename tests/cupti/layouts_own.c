/* SPDX-License-Identifier: Apache-2.0 */
/* Funnel's side of the comparison, and the comparison. */
#include <stdio.h>

#include "cupti_abi.h"
#include "layout_list.h"

#define RECORD(own, nvidia) {#own, sizeof(struct own)},
#define MEMBER(own, member, nvidia, its) {#own "." #member, offsetof(struct own, member)},
#define VALUE(own, nvidia) {#own, (unsigned long)own},

const struct number own_numbers[] = {NUMBERS};
const unsigned own_count = sizeof(own_numbers) / sizeof(*own_numbers);

int main(void)
{
    int failed = own_count != nvidia_count;

    for (unsigned i = 0; i < own_count && !failed; i++) {
        if (own_numbers[i].value == nvidia_numbers[i].value)
            continue;
        printf("%s is %lu, and %s %lu\n", own_numbers[i].name, own_numbers[i].value,
               nvidia_numbers[i].name, nvidia_numbers[i].value);
        failed = 1;
    }
    printf("%u numbers compared\n", own_count);
    return failed;
}
