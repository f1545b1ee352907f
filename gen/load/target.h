#ifndef RUNNEL_LOAD_TARGET_H
#define RUNNEL_LOAD_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "gen/load/options.h"

/*
 * Where the connections go: the address is looked up once, before the run, and tried. So a run
 * against nothing ends at once, and ten thousand starts do not ask a resolver ten thousand
 * times.
 */

enum { TARGET_ADDRESS_MAX_BYTES = 64, TARGET_WHY_MAX_BYTES = 256 };

struct target {
    char address[TARGET_ADDRESS_MAX_BYTES]; /* numeric; empty for a Unix socket */
    bool is_loopback_v4;                    /* then source addresses can be chosen in 127/8 */
    bool is_tls;
};

enum target_status {
    TARGET_FOUND,
    TARGET_BAD_URL,   /* usage */
    TARGET_NO_ANSWER, /* nothing listens, or no such host */
};

/* Connects once and closes. On anything but TARGET_FOUND `why` has a sentence. Blocks for at
 * most five seconds for each address of the host. */
enum target_status target_find(struct target *target, const struct options *options,
                               const char *url, char why[TARGET_WHY_MAX_BYTES]);

#endif
