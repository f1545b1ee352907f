#ifndef RUNNEL_LOAD_LOOP_H
#define RUNNEL_LOAD_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include "gen/load/events.h"
#include "gen/load/figures.h"
#include "gen/load/options.h"
#include "gen/load/target.h"

/*
 * A run from its first request to the end of its last: one thread, one epoll set that libcurl
 * fills (curl_multi_socket_action), the schedule, and the pauses of slow readers.
 *
 * SIGINT or SIGTERM starts nothing more and closes what is open: it is reported as interrupted.
 * The caller has blocked both before; a second one ends the process.
 */

enum { LOOP_WHY_MAX_BYTES = 256 };

/* 0, or -1 when it could not run (no descriptors, no memory): `why` says it in a sentence. */
int loop_run(const struct options *options, const struct target *target,
             struct figures *figures, struct events *events, char why[LOOP_WHY_MAX_BYTES]);

/* Raises RLIMIT_NOFILE as far as it goes. 0 when so many streams fit, else -1 and `why`. */
int loop_make_room(uint64_t streams, char why[LOOP_WHY_MAX_BYTES]);

#endif
