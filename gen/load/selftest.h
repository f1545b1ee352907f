#ifndef RUNNEL_LOAD_SELFTEST_H
#define RUNNEL_LOAD_SELFTEST_H

#include "gen/load/options.h"

/*
 * How much this client can take, and how true its times are, on this machine: it measures a
 * server of its own that can do more (writer.h). In steps of tokens a second, each in a read of
 * its own, until it no longer keeps up; the last of them once more by epoll and recv alone; and
 * once as fast as the bytes come.
 *
 * Prints a table and the ceiling; with --json also as JSON. Returns the exit status: 0, or 3
 * when it could not run.
 */
int selftest_run(const struct options *options);

#endif
