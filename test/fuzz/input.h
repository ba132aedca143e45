/*-------------------------------------------------------------------------
 *
 * input.h
 *	  The bytes of a fuzzer's input, as numbers.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define CHECK(condition) \
	do { \
		if (!(condition)) \
			abort(); \
	} while (0)

typedef struct Input
{
	const uint8_t *data;
	size_t		left;
} Input;

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next number, of this many bytes.  Bytes that are missing at the end are 0. */
static inline uint64_t
take(Input *in, size_t bytes)
{
	uint64_t	value = 0;

	for (; bytes > 0 && in->left > 0; bytes--, in->left--)
		value = value << 8 | *in->data++;
	return value;
}

#endif							/* FUZZ_INPUT_H */
