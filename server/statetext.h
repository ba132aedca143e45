/*-------------------------------------------------------------------------
 *
 * server/statetext.h
 *	  What walsizer keeps across restarts, and its form as text.  Includes no
 *	  header of the server.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef WALSIZER_STATETEXT_H
#define WALSIZER_STATETEXT_H

#include "policy/policy.h"

#define WALSIZER_MEMORY_VERSION		"1"
#define WALSIZER_HISTORY_SLOTS		1024	/* adjustments kept */
#define WALSIZER_MESSAGE_SIZE		256 /* with terminating zero */

/* Where a TimestampTz of the server begins and ends. */
#define WALSIZER_LEAST_TIME			(-INT64_C(211813488000000000))
#define WALSIZER_MOST_TIME			(INT64_C(9223371331200000000) - 1)

/* Longest line of the file, with its newline, and most lines it can have. */
#define WALSIZER_LINE_SIZE			1024
#define WALSIZER_MEMORY_LINES \
	(3 + WALSIZER_RECOVERIES + WALSIZER_PEAK_SLOTS + WALSIZER_HISTORY_SLOTS)

/* What came of an attempt to change max_wal_size. */
typedef struct WalsizerResult
{
	WalsizerOutcome outcome;
	char		message[WALSIZER_MESSAGE_SIZE]; /* why not; else empty */
} WalsizerResult;

/* A decision, and what came of it.  The file has a part of the figures. */
typedef struct WalsizerEvent
{
	int64_t		number;			/* counts up from 1 */
	int64_t		at;				/* a TimestampTz */
	int64_t		old_mb;			/* in effect before */
	WalsizerDecision decision;	/* target_mb: in effect afterwards, if applied */
	WalsizerSettings settings;
	bool		standby;
	int64_t		forced_after;	/* in the timeout after it; -1: not over yet */
	WalsizerResult result;

	/* not in the file */
	int64_t		made_at;		/* ms of the monotonic clock; 0: before this start */
	int64_t		forced_before;	/* checkpoints, since the server started */
} WalsizerEvent;

typedef struct WalsizerHistory
{
	int64_t		last_number;	/* of the newest event ever; 0: none */
	int			length;
	WalsizerEvent events[WALSIZER_HISTORY_SLOTS];	/* oldest first */
} WalsizerHistory;

typedef struct WalsizerMemory
{
	uint64_t	system_identifier;
	WalsizerState state;		/* as far as the comment on it says */
	int64_t		boost_mb;		/* 0: no planned load */
	int64_t		boost_until;	/* a TimestampTz */
	WalsizerRecovery recoveries[WALSIZER_RECOVERIES];	/* newest first */
	int			num_recoveries;
	WalsizerHistory history;
} WalsizerMemory;

extern const char *walsizer_memory_parse(const char *from, size_t length, WalsizerMemory *memory,
										 int *line);
extern size_t walsizer_memory_format(WalsizerMemory *memory, char *to, size_t size);

#define WALSIZER_NOTE_SIZE			112	/* with terminating zero */

extern void walsizer_note_format(const WalsizerNote *note, char *text);
extern WalsizerNote walsizer_note_parse(const char *text);

#endif							/* WALSIZER_STATETEXT_H */
