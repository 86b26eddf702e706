/* SPDX-License-Identifier: Apache-2.0 */
/* See lane_choice.h. */
#include "lane_choice.h"

#include <string.h>

#include "client_class.h"

static const uint8_t no_token[HELLO_TOKEN_SIZE];

/* NULL when there is none. */
static struct lane_choice *find_choice(struct lane_choices *choices, const uint8_t *token)
{
    for (unsigned i = 0; i < LANE_CHOICES; i++)
        if (!memcmp(choices->choice[i].token, token, HELLO_TOKEN_SIZE))
            return &choices->choice[i];
    return NULL;
}

static struct lane_choice *find_oldest(struct lane_choices *choices)
{
    struct lane_choice *oldest = &choices->choice[0];

    for (unsigned i = 1; i < LANE_CHOICES; i++)
        if (choices->choice[i].used < oldest->used)
            oldest = &choices->choice[i];
    return oldest;
}

struct lane_choice lane_choice_find(struct lane_choices *choices,
                                    const uint8_t token[HELLO_TOKEN_SIZE])
{
    struct lane_choice *choice =
        memcmp(token, no_token, HELLO_TOKEN_SIZE) ? find_choice(choices, token) : NULL;

    if (!choice)
        return (struct lane_choice){.class = CLASS_UNSET};
    choice->used = ++choices->clock;
    return *choice;
}

bool lane_choice_set(struct lane_choices *choices, const uint8_t token[HELLO_TOKEN_SIZE],
                     uint32_t class, enum lane_wish wish)
{
    bool is_none = class == CLASS_UNSET && wish == LANE_OF_CLASS;
    struct lane_choice *choice;

    if (!memcmp(token, no_token, HELLO_TOKEN_SIZE))
        return false;
    choice = find_choice(choices, token);
    if (!choice && !is_none)
        choice = find_oldest(choices);
    if (!choice)
        return true;
    memset(choice, 0, sizeof(*choice));
    if (is_none)
        return true;
    memcpy(choice->token, token, HELLO_TOKEN_SIZE);
    choice->class = class;
    choice->wish = wish;
    choice->used = ++choices->clock;
    return true;
}
