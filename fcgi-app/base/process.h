#ifndef RUNNEL_BASE_PROCESS_H
#define RUNNEL_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether another process still lives. Pids are used again, so a process is its pid and its
 * start time together (proc(5), /proc/PID/stat).
 */

/* Clock ticks from the boot to its start; 0 when it cannot be told. */
uint64_t process_start_time(int32_t pid);

/*
 * Whether the process that had this pid and start time (0: any) lives. A zombie is dead,
 * whenever its parent gets round to it: in a container, maybe never. When /proc does not tell,
 * it lives.
 */
bool process_is_alive(int32_t pid, uint64_t started);

/* Whether it lives and is not stopped (SIGSTOP, a debugger). */
bool process_is_running(int32_t pid);

#endif
