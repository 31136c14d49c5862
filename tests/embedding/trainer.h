/* A small training run inside of whatever process calls it. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Trains a small network for `steps` steps on a device with `threads` threads; what is offloaded goes to the
 * host, and with `disk` to the disk. Returns the status of the first call that failed (0: none), fills digest
 * with that of the parameters, and message with what the failed call said. Every handle has been released
 * when it returns. `during` (may be NULL) is called before the last step, while all of cairn's threads live.
 */
int embedded_run(unsigned threads, int disk, unsigned steps, void (*during)(void), char digest[33],
                 char message[1024]);

/* The plan of that run and its problem as JSON, on one line; to be released with free(). NULL: failed. */
char* embedded_plan(void);

#ifdef __cplusplus
}
#endif
