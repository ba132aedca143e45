/*-------------------------------------------------------------------------
 *
 * end_line.h
 *	  The last line of a state file, for tests that write one.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef END_LINE_H
#define END_LINE_H

#include <inttypes.h>
#include <stdio.h>

/*
 * Appends the number of lines before it and their FNV-1a sum, as
 * server/statetext.c writes them.  Returns the new length.
 */
static inline size_t
add_end(char *text, size_t length)
{
	uint64_t	sum = UINT64_C(0xcbf29ce484222325);
	int			lines = 0;

	for (size_t i = 0; i < length; i++)
	{
		sum = (sum ^ (unsigned char) text[i]) * UINT64_C(0x100000001b3);
		lines += text[i] == '\n';
	}
	return length + (size_t) sprintf(text + length, "end %d %" PRIx64 "\n", lines, sum);
}

#endif							/* END_LINE_H */
