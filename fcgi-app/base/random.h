#ifndef RUNNEL_BASE_RANDOM_H
#define RUNNEL_BASE_RANDOM_H

#include <stdint.h>

/*
 * Random numbers by position: number `counter` of the sequence `seed`, without those before it
 * and without state, so it is the same whoever else draws. It is splitmix64 (Steele, Lea and
 * Flood, 2014), read at a position. FROZEN: token sequences and schedules depend on it.
 */
static inline uint64_t random_at(uint64_t seed, uint64_t counter)
{
    uint64_t z = seed + (counter + 1) * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

#endif
