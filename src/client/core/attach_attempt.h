/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt to attach to a server, the first time or again. It exchanges the messages with daemon
 * and server, checks the server's offer, and maps the shared memory that comes with it.
 */
#pragma once

#include "client_attach.h"

struct attempt {
    int socket;
    unsigned directory; /* the first one to try, then the one behind that of the daemon */
    struct attach_offer offer;
    int fds[ATTACH_FDS];
    CUresult status;
    bool lost; /* the connection ended before an answer came */
    struct attach_request request;
    char *why;
    size_t why_size;
};

/* Notes why the attempt has failed. Returns ATTACH_REFUSED. */
enum attach_outcome attempt_refuse(struct attempt *attempt, CUresult status, const char *why);

/* Those that came with the offer. */
void attempt_close_descriptors(struct attempt *attempt);

/* On the connected socket. ATTACHED stands for success here, else ATTACH_REFUSED. */
enum attach_outcome attempt_send_hello(struct attempt *attempt);

/* Waits for the offer, and checks it as far as a wrong number could harm this process. */
enum attach_outcome attempt_receive_offer(struct attempt *attempt);

/* False when the server has ended. */
bool attempt_answer(struct attempt *attempt, enum attach_verdict verdict);

/* Bytes of the addresses of devices and host. */
size_t offer_window_size(const struct attach_offer *offer);

/* Maps the region that the GPU sees, at its place in the window. 0 or -errno. */
int attempt_map_gpu_region(struct attempt *attempt);

/* A copy of the table, which the server cannot change any more, for the caller to free. 0 or
 * -errno. */
int attempt_read_devices(const struct attempt *attempt, struct device_record **ret_records);

/* After attempt number `tries`: pauses before the next one. False when the attempt counts. */
bool attempt_pause(const struct attempt *attempt, size_t tries);

/* Behind an attempt, with its descriptors closed: whether the program had too few is the reason,
 * and then it counts. */
void attempt_explain(struct attempt *attempt, enum attach_outcome outcome);
