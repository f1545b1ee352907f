#ifndef RUNNEL_ENDPOINTS_APP_H
#define RUNNEL_ENDPOINTS_APP_H

#include "config.h"
#include "engine/ledger.h"
#include "engine/loop.h"

/* What the endpoints share; made by main, the same for every request. */
struct app {
    const struct config *config;
    struct ledger *ledger;
    struct loop *loop;
    const struct timing_trace *trace; /* --timing-trace; NULL: none */
    struct keys *keys;                /* --api-key-file; NULL: none are asked for */
    struct cors *cors;                /* --cors-origin; NULL: off */
};

#endif
