#ifndef RUNNEL_ENDPOINTS_KEYS_H
#define RUNNEL_ENDPOINTS_KEYS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The keys that clients may have (--api-key-file): one a line, empty lines and lines that begin
 * with `#` aside. Whoever guesses at one learns nothing from the time that the answer takes:
 * each is compared with all of them, over the same number of bytes. No message holds a key or a
 * part of one.
 */

enum { KEYS_MAX = 1024, KEY_MAX_BYTES = 240, KEYS_FILE_MAX_BYTES = 256 << 10 };

struct keys;

enum { KEYS_ERROR_MAX_BYTES = 300 };

/* NULL with a sentence in `error`. Blocks on the file; start-up only. */
struct keys *keys_open(const char *path, char error[KEYS_ERROR_MAX_BYTES]);

/* Read the file anew. 0, or -1 with a sentence, and the keys stay as they were. Any thread. */
int keys_reload(struct keys *keys, char error[KEYS_ERROR_MAX_BYTES]);

/* How many there are. */
size_t keys_count(struct keys *keys);

/* Whether other users of the machine may read the file. */
bool keys_are_public(struct keys *keys);

/* Whether this Authorization header holds one. Any thread; does not block. */
bool keys_admit(struct keys *keys, const char *authorization);

void keys_close(struct keys *keys);

#endif
