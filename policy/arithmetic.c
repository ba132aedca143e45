/*-------------------------------------------------------------------------
 *
 * policy/arithmetic.c
 *	  The server's arithmetic: how much WAL forces a checkpoint, and which size
 *	  lets that much WAL pass.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

/*
 * CheckPointSegments for a value of max_wal_size (MB): how many segments,
 * counted from the one that holds the redo pointer, force a checkpoint when
 * filled.  At least 1.  The integer and double steps are those of
 * CalculateCheckpointSegments() in xlog.c, the same in 15 to 19.
 */
int64_t
walsizer_checkpoint_segments(int64_t max_wal_size_mb, const WalsizerSettings *settings)
{
	int64_t		segments = max_wal_size_mb / (settings->segment_bytes / WALSIZER_MB);
	double		target = (double) segments / (1.0 + settings->completion_target);

	return walsizer_max(1, (int64_t) target);
}

/* The trigger point, in bytes from the start of the redo pointer's segment. */
int64_t
walsizer_trigger_point(int64_t max_wal_size_mb, const WalsizerSettings *settings)
{
	return walsizer_checkpoint_segments(max_wal_size_mb, settings) *
		settings->segment_bytes;
}

/*
 * The smallest max_wal_size (MB, whole segments, at most what the server accepts) with
 * which wal_bytes of WAL between two redo pointers never force a checkpoint.
 *
 * The redo pointer may lie anywhere in its segment, hence one segment more than the WAL
 * fills.  The server needs two segments.  Rounding takes away a segment at most.
 */
int64_t
walsizer_size_for(int64_t wal_bytes, const WalsizerSettings *settings)
{
	int64_t		segment_mb = settings->segment_bytes / WALSIZER_MB;
	int64_t		wal = walsizer_clamp_bytes(wal_bytes);
	int64_t		needed = (wal + settings->segment_bytes - 1) / settings->segment_bytes + 1;
	double		spread = 1.0 + settings->completion_target;
	int64_t		segments = walsizer_max(2, (int64_t) ((double) needed * spread));

	if (walsizer_checkpoint_segments(segments * segment_mb, settings) < needed)
		segments++;
	return walsizer_min(segments, WALSIZER_MOST_MB / segment_mb) * segment_mb;
}

/* The size (MB) for that much WAL with walsizer.headroom. */
int64_t
walsizer_size_with_headroom(const WalsizerConfig *config, const WalsizerSettings *settings,
							int64_t wal_bytes)
{
	return walsizer_size_for(walsizer_to_int64((double) wal_bytes * config->headroom), settings);
}

/*
 * Is a size (MB) that is not set worth saying: does it differ by more than a quarter
 * from what was said last?  Then it is said now.
 */
bool
walsizer_is_news(int64_t mb, int64_t *said_mb)
{
	if ((walsizer_max(mb, *said_mb) - walsizer_min(mb, *said_mb)) * 4 <= *said_mb)
		return false;
	*said_mb = mb;
	return true;
}
