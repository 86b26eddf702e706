/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves of running programs between the lanes of their service, and between the devices of their
 * server. The other lane is started if it does not run. Then the server is asked to let the program
 * go at its next idle point. The program attaches again as after the end of a server. It loses
 * nothing when it cannot move: it stays, and says why.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lane_choice.h"

struct client_record;
struct daemon;
struct server_process;

/* How a move ended: LANE_MOVED, one of those below, or an enum move_obstacle, and then the program
 * stays for that reason. */
enum lane_move_result {
    LANE_MOVED = 0,
    LANE_MOVE_GONE = 1001,      /* the program has ended */
    LANE_MOVE_NO_LANE = 1002,   /* the other lane cannot be started */
    LANE_MOVE_WITHDRAWN = 1003, /* by another order */
    LANE_MOVE_SILENT = 1004,    /* its server does not answer */
    LANE_MOVE_UNKNOWN = 1005,   /* the program has no token */
};

/* NULL for a caller that does nothing with the result, which the log has. */
typedef void lane_move_done(void *context, int result);

/* Why a program stays, as the end of a sentence. */
const char *lane_move_text(int result);

/* Whether the program is in the lane that this class and wish name. Its domain stays. */
bool lane_move_is_there(const struct client_record *record, uint32_t class, enum lane_wish wish);

/* Class and lane of the program when it attaches again, in the file for the next daemon as well.
 * False for a program without a token. */
bool lane_move_choose(struct client_record *record, uint32_t class, enum lane_wish wish);

/* Moves the program to that lane, and `done` is called once with the result, perhaps before this
 * returns, perhaps much later. An order for the same program that has not ended is withdrawn. What
 * the program has now it has again when it stays. */
void lane_move_order(struct client_record *record, uint32_t class, enum lane_wish wish,
                     lane_move_done *done, void *context);

/* The same without the order of an operator, in its class. The program stays where the move would
 * cost it much. Then it would wait for long until its work is done, which is tried some times. It
 * also stays out of the batch and the spare lane if these would have to lock much of its memory. */
void lane_move_order_gently(struct client_record *record, enum lane_wish wish, lane_move_done *done,
                            void *context);

/* The same for a program that has asked for the order and waits for it: it is asked once. */
void lane_move_answer(struct client_record *record, enum lane_wish wish);

/* Whether such an order would bring the program to the server of that name. */
bool lane_move_leads_to(const struct client_record *record, enum lane_wish wish, const char *name);

/* Starts the lane to which such an order may follow soon. It ends like any lane without programs.
 */
void lane_move_prepare(const struct client_record *record, enum lane_wish wish);

/* The same to another device of its server, by the number that the server gives it. */
void lane_move_order_device(struct client_record *record, uint32_t device, lane_move_done *done,
                            void *context);

/* Whether the program has an order that has not ended. */
bool lane_move_is_under_way(const struct client_record *record);

/* Whether that order answers the program that asks for the spare lane: it is on its way, or for
 * that lane. Any other may wait for long, such as one that is to be tried again. */
bool lane_move_comes_next(const struct client_record *record);

/* The program has asked for an order, and gets none. */
void lane_move_refuse(const struct client_record *record);

/* The program is to stay where it is: withdraws an order that has not ended. The caller that takes
 * one back hears LANE_MOVED where the program was on its way, and else LANE_MOVE_WITHDRAWN. */
void lane_move_withdraw(const struct client_record *record);
void lane_move_take_back(const struct client_record *record, lane_move_done *done, void *context);

/* Whether a move to the server has not ended. */
bool lane_move_is_awaited(const struct server_process *server);

/* Servers have become ready, or have ended; and now and then. */
void lane_moves_follow(struct daemon *daemon);
