/* SPDX-License-Identifier: Apache-2.0 */
/* The program funnel-server. Its main() is not in the library, so that tests can link the rest. */
#include "server_main.h"

int main(int argc, char **argv)
{
    return server_main(argc, argv);
}
