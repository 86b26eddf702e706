/* SPDX-License-Identifier: Apache-2.0 */
/* funnel-server, from its command line to its end. */
#pragma once

/* The program's main(). Returns its exit status where the server cannot start. */
int server_main(int argc, char **argv);
