/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of the RDB format. Where they stand in a file, and what follows each, is in
 * docs/persistence.md. */
#ifndef PERSIST_FORMAT_H
#define PERSIST_FORMAT_H

#include "base/compiler.h"

#define RDB_MAGIC "REDIS"
#define RDB_HEADER_LEN 9 /* magic, four digits of version */
#define RDB_WRITE_VERSION 10
#define RDB_WRITE_HEADER RDB_MAGIC "0010"
#define RDB_READ_VERSION_MAX 12
#define RDB_CHECKSUM_SINCE 5 /* version */
#define RDB_CHECKSUM_LEN 8

#define RDB_LISTPACK_BYTES_MAX 8192 /* what is packed into one listpack, its own bytes included */
#define RDB_COMPRESS_LEN_MIN 21
#define RDB_COMPRESS_LEN_MAX ((size_t)16 << 20)

/* DUMP's payload: version, checksum behind the value. */
#define RDB_PAYLOAD_FOOTER_LEN 10

enum rdb_opcode {
    RDB_OP_SLOT_INFO = 0xF4,
    RDB_OP_FUNCTION = 0xF5,
    RDB_OP_FUNCTION_PRE_GA = 0xF6,
    RDB_OP_MODULE_AUX = 0xF7,
    RDB_OP_IDLE = 0xF8,
    RDB_OP_FREQ = 0xF9,
    RDB_OP_AUX = 0xFA,
    RDB_OP_RESIZE_DB = 0xFB,
    RDB_OP_EXPIRE_MS = 0xFC,
    RDB_OP_EXPIRE_S = 0xFD,
    RDB_OP_SELECT_DB = 0xFE,
    RDB_OP_EOF = 0xFF,
};

enum rdb_type {
    RDB_STRING = 0,
    RDB_LIST = 1,
    RDB_SET = 2,
    RDB_ZSET = 3,
    RDB_HASH = 4,
    RDB_ZSET_2 = 5,
    RDB_MODULE = 6,
    RDB_MODULE_2 = 7,
    RDB_HASH_ZIPMAP = 9,
    RDB_LIST_ZIPLIST = 10,
    RDB_SET_INTSET = 11,
    RDB_ZSET_ZIPLIST = 12,
    RDB_HASH_ZIPLIST = 13,
    RDB_LIST_QUICKLIST = 14,
    RDB_STREAM = 15,
    RDB_HASH_LISTPACK = 16,
    RDB_ZSET_LISTPACK = 17,
    RDB_LIST_QUICKLIST_2 = 18,
    RDB_STREAM_2 = 19,
    RDB_SET_LISTPACK = 20,
    RDB_STREAM_3 = 21,
    RDB_HASH_METADATA_PRE_GA = 22,
    RDB_HASH_LISTPACK_EX_PRE_GA = 23,
    RDB_HASH_METADATA = 24,
    RDB_HASH_LISTPACK_EX = 25,
    RDB_TYPES
};

/* First bytes of lengths and strings. */
enum rdb_len {
    RDB_LEN_6 = 0x00,
    RDB_LEN_14 = 0x40,
    RDB_LEN_32 = 0x80,
    RDB_LEN_64 = 0x81,
    RDB_LEN_SPECIAL = 0xC0, /* and one of rdb_special */
    RDB_LEN_MASK = 0xC0,
};

enum rdb_special { RDB_INT8, RDB_INT16, RDB_INT32, RDB_LZF };

/* What a node of LIST_QUICKLIST_2 holds. */
enum rdb_node { RDB_NODE_PLAIN = 1, RDB_NODE_PACKED = 2 };

/* A score as text. */
enum rdb_score { RDB_SCORE_NAN = 253, RDB_SCORE_INF = 254, RDB_SCORE_MINUS_INF = 255 };

/* Values inside a module's data. */
enum rdb_module_op {
    RDB_MODULE_EOF,
    RDB_MODULE_SINT,
    RDB_MODULE_UINT,
    RDB_MODULE_FLOAT,
    RDB_MODULE_DOUBLE,
    RDB_MODULE_STRING,
};

#endif
