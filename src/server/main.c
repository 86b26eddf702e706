/* SPDX-License-Identifier: Apache-2.0 */
/*
 * funnel-server: the program. Apart from the library, so that tests can link the rest.
 */
#include "server.h"

int main(int argc, char **argv)
{
    return server_main(argc, argv);
}
