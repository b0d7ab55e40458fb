/* SPDX-License-Identifier: BSD-3-Clause */
/* What DUMP and MIGRATE share. */
#ifndef CMD_DUMP_PRIV_H
#define CMD_DUMP_PRIV_H

#include "persist/writer.h"

#define DUMP_COMPRESS true /* as Redis's default rdbcompression */

#endif
