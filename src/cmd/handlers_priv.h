/* SPDX-License-Identifier: BSD-3-Clause */
/* Prototypes of all handlers, made from the rows: include it in each file that defines some. */
#ifndef CMD_HANDLERS_PRIV_H
#define CMD_HANDLERS_PRIV_H

struct call;

#define COMMAND(handler, ...) void handler(struct call *call);
#define CONTAINER(...)
#include "commands.def"
#undef CONTAINER
#undef COMMAND

#endif
