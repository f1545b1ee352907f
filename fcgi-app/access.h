#ifndef RUNNEL_ACCESS_H
#define RUNNEL_ACCESS_H

#include "engine/ledger.h"

/* The access log: one line for each request that has ended. Any thread; does not block. */
void access_log(const struct ledger_request *request);

#endif
