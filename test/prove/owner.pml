/*
 * test/prove/owner.pml
 *	  Whose value is it?  A model of all that can happen to max_wal_size, for
 *	  Spin, which tries every order of it.
 *
 * This file has the files, the server's processes that read them,
 * administrators and trouble.  owner_note.pml has what the worker and the
 * start-up check do.  With -DOLD owner_memory.pml has what they did before the
 * note was the only proof (commit d2acf73).  That has faults, and a model that
 * finds them proves more.  "script/torture prove --only owner" runs both.
 *
 * What is atomic, no other process sees half done: postgresql.auto.conf is
 * replaced under AutoFileLock, and read as a whole.  Between any two steps
 * there may be an act of an administrator, or trouble, up to ACTS and TROUBLES
 * in all, and any number of reloads.  Any write of walsizer's may fail, and any
 * wait for a reload may end too early.
 *
 * Where a note stands is not in the model: ALTER SYSTEM SET puts its line behind
 * the note, and RESET removes the line.  So after either, a note about a line
 * never becomes valid again (INVALID).
 *
 * Premises:
 * - An error in the files is not made or corrected while a reload is under way:
 *	 the postmaster and the worker both read it, or neither does.
 * - Who corrects an error in the files reloads, sooner or later.
 * - A worker misses no reload while it starts.
 * - A note is removed at a later tick than the one that saw it: by then the
 *	 postmaster has handled the signal that made the worker read it.
 * - postgresql.conf sets a size with which the server can start.  If it does
 *	 not, the original value returns as a line of its own, which hides it.
 * - Nobody edits postgresql.auto.conf, or restores it older than the state file.
 */
#ifndef ACTS
#define ACTS 2
#endif
#ifndef TROUBLES
#define TROUBLES 2
#endif

/*
 * The properties.  ASK: the sum of those to be checked.
 *
 * LOST		what ALTER SYSTEM set last is in the file, or is what a note would
 *			restore
 * BLAMED	an administrator is said to have changed what only walsizer changed
 * CLAIMED	an administrator's change is taken for walsizer's
 * NO_WAY	a value of walsizer's is in effect, and the worker does not know it,
 *			or knows no original value
 * REVERTED walsizer_revert() says that it is done, or has nothing to do, and a
 *			value of walsizer's is in effect, or waits in the file for a reload
 * PERSON	with no more acts and no more trouble, walsizer_revert() does not lead
 *			to the administrator's value, in memory and in the file, or walsizer
 *			would write nothing more
 * LEFT		then the file keeps a note
 */
#define LOST		1
#define BLAMED		2
#define CLAIMED		4
#define NO_WAY		8
#define REVERTED	16
#define PERSON		32
#define LEFT		64
#define RESTORED_START 128		/* OLD: BLAMED for what the start-up check did */
#define DECLINED	256			/* OLD: CLAIMED after a return was declined */
#ifndef ASK
#define ASK 127
#endif
#define must(property, condition) assert(!(ASK & property) || (condition))

/* sizes are 1 to 3; 0: none.  Notes: */
#define NONE		0
#define WRITTEN		1				/* "about instead of original" */
#define RESTORED	2				/* "about restored" */
#define NO_ROOM		3				/* the same by the start-up check */
#define INVALID		4				/* any that cannot become valid again */

/* postgresql.conf: its size, and an error that makes each reload fail */
byte conf = 1;
bit conf_error;

/* postgresql.auto.conf: line and note; "by_as": the original stood there */
byte line;
byte note;
byte note_about;
byte note_original;
bit note_by_as;

/* for the properties alone */
byte wanted;					/* what ALTER SYSTEM set last; 0: nothing */
bit admins_line;				/* an administrator set the line last, or removed it */
bit waits;						/* an ALTER SYSTEM waits for a reload */
bit edit_waits;					/* so does an edit of postgresql.conf */
bit was_error;

/* A note is valid if the line says what it says. */
#define DISK_WRITTEN	(note == WRITTEN)
#define DISK_RESTORED	((note == RESTORED || note == NO_ROOM) && \
	(note_by_as || line == 0))
#define DISK_VALID		(DISK_WRITTEN || DISK_RESTORED)

/* what a process has read: the files at one moment */
typedef Memory
{
	byte value;					/* of max_wal_size */
	bit in_auto;				/* from postgresql.auto.conf */
	byte note;					/* NONE if invalid */
	byte about;
	byte original;
	bit by_as;
	bit invalid;				/* there was a note, and it was invalid */
	byte conf;
	bit admins_line
};
Memory pm;						/* the postmaster */
Memory w;						/* the worker */

/* shared memory and its copy, the state file */
byte own;
byte original;
bit by_as;
bit loaded;
byte f_own;
byte f_original;
bit f_by_as;

mtype = { normal, no_worker, no_library };
mtype mode = normal;
bit no_room;
bit pm_signal;					/* the postmaster is to reload */
bit w_signal;					/* the worker is to reread */

mtype = { gone, idle, to_write, to_signal, to_wait, finished };
mtype at = gone;				/* where the worker is */
byte target;
bit restoring;

byte acts;
byte troubles;
bit quiet;						/* no more acts, no more trouble */
byte samples;					/* taken since then */

inline select_size(a_size)
{
	if
	:: a_size = 1
	:: a_size = 2
	:: a_size = 3
	fi
}

/* the files as one process reads them */
inline read(m)
{
	m.in_auto = line != 0;
	m.value = (line != 0 -> line : conf);
	m.conf = conf;
	m.admins_line = admins_line;
	if
	:: DISK_VALID ->
		m.note = note; m.about = note_about; m.original = note_original; m.by_as = note_by_as;
		m.invalid = 0
	:: else ->
		m.note = NONE; m.about = 0; m.original = 0; m.by_as = 0;
		m.invalid = note != NONE
	fi
}

inline inherit()
{
	w.value = pm.value; w.in_auto = pm.in_auto; w.note = pm.note; w.about = pm.about;
	w.original = pm.original; w.by_as = pm.by_as; w.invalid = pm.invalid; w.conf = pm.conf;
	w.admins_line = pm.admins_line
}

inline clear_note()
{
	note = NONE; note_about = 0; note_original = 0; note_by_as = 0
}

/* An administrator set or removed the line: does the note still say what it says? */
inline outdate_note()
{
	if
	:: note == WRITTEN || (note != NONE && note_by_as) -> clear_note(); note = INVALID
	:: else
	fi
}

/* Replace line and note, as walsizer does. */
inline put(a_note, an_about, an_original, a_by_as)
{
	note = a_note; note_about = an_about; note_original = an_original; note_by_as = a_by_as;
	line = (note == WRITTEN || note_by_as -> note_about : 0);
	admins_line = 0;
	printf("walsizer writes line %d, note %d (%d, original %d, by_as %d)\n",
		line, note, note_about, note_original, note_by_as);
	if
	:: note == NONE -> clear_note()
	:: else
	fi;
	must(LOST, wanted == (note == WRITTEN -> (note_by_as -> note_original : 0) : line))
}

inline save_common()
{
	printf("state saved: own %d, original %d\n", own, original);
	f_own = own; f_original = original; f_by_as = by_as
}

inline load_common()
{
	own = f_own; original = f_original; by_as = f_by_as; loaded = 1
}

inline stop_worker()
{
	at = gone; w_signal = 0; target = 0; restoring = 0;
	w.value = 0; w.in_auto = 0; w.note = 0; w.about = 0; w.original = 0; w.by_as = 0;
	w.invalid = 0; w.conf = 0; w.admins_line = 0
}

inline lose_shared_memory()
{
	own = 0; original = 0; by_as = 0; loaded = 0;
	lose_shared_memory_too()
}

/*
 * Record that an administrator changed the value.  It is true if an
 * administrator set or removed the line, or if this is neither the original
 * value, which walsizer restores, nor what it meant to restore.  What an administrator did may also be in the file
 * only: a worker reads it after the postmaster, so the next one may know less.
 */
inline blame()
{
	printf("recorded: an administrator changed it to %d\n", w.value);
	must(BLAMED, w.admins_line || admins_line || w.value != original || (w.note != NONE && w.value != w.about))
}

/* no reload is under way */
#define SETTLED (!pm_signal && !w_signal)

#ifdef OLD
#include "owner_memory.pml"
#else
#include "owner_note.pml"
#endif

inline reload()
{
	pm_signal = 0;
	printf("the postmaster reloads (error %d)\n", conf_error);
	if
	:: !conf_error -> read(pm); waits = 0; edit_waits = 0
	:: else
	fi;
	if
	:: at != gone -> w_signal = 1
	:: else
	fi
}

inline reread()
{
	w_signal = 0;
	printf("the worker rereads (error %d)\n", conf_error);
	if
	:: !conf_error -> read(w)
	:: else
	fi
}

/* The server ends, in good order or not, and starts again. */
inline restart(a_mode)
{
	if
	:: at != gone -> end_worker()
	:: !quiet || at == gone
	fi;
	stop_worker();
	lose_shared_memory();
	pm_signal = 0;
	mode = a_mode;
	printf("the server restarts: %e, no room %d\n", mode, no_room);
	read(pm);
	waits = 0;
	edit_waits = 0;
	start_too();
	if
	:: mode != no_library && no_room && pm.note == WRITTEN -> check_room()
	:: else
	fi
}

proctype postmaster()
{
	do
	:: atomic { !quiet && pm_signal -> reload() }
	:: atomic { !quiet && mode == normal && at == gone -> start_worker() }
	/* a standby with hot_standby = off is promoted */
	:: atomic { !quiet && mode == no_worker -> mode = normal }
	od
}

proctype worker()
{
	byte size;
	bit as;

	do
	:: atomic { !quiet -> step() }
	/* Now nothing else happens: do what is left to do, and judge. */
	:: atomic { quiet && at != finished ->
		do
		:: at == finished -> break
		:: else ->
			if
			:: pm_signal -> reload()
			:: !pm_signal && mode == no_library -> restart(normal)
			:: !pm_signal && mode == no_worker -> mode = normal
			:: !pm_signal && mode == normal && at == gone -> start_worker()
			:: !pm_signal && mode == normal && at != gone -> step()
			fi
		od;
		must(PERSON, waits || (own == 0 && line == wanted));
		must(PERSON, waits || edit_waits || (w.value == pm.value && w.value == (line != 0 -> line : conf)));
		must(PERSON, waits || !WAITS);
		must(LEFT, waits || note == NONE);
		break }
	od
}

proctype administrator()
{
	do
	:: atomic { !quiet && acts < ACTS -> acts++;
		if
		:: select_size(line); admins_line = 1; wanted = line; waits = 1; outdate_note();
			printf("ALTER SYSTEM SET %d\n", line)
		:: line != 0 -> line = 0; admins_line = 1; wanted = 0; waits = 1; outdate_note();
			printf("ALTER SYSTEM RESET\n")
		:: line != 0 || note != NONE -> line = 0; admins_line = 1; wanted = 0; waits = 1; clear_note();
			printf("ALTER SYSTEM RESET ALL\n")
		:: conf = 3 - conf; edit_waits = 1;
			printf("postgresql.conf is edited: %d\n", conf)
		fi }
	:: atomic { !quiet && !pm_signal -> pm_signal = 1; printf("an administrator reloads\n") }
	od
}

proctype trouble()
{
	do
	:: atomic { !quiet && troubles < TROUBLES -> troubles++;
		if
		:: SETTLED && !conf_error -> conf_error = 1; was_error = 1; printf("an error in the files\n")
		:: at != gone -> printf("the worker crashes, %e\n", at); stop_worker()
		:: at != gone -> printf("the worker ends, %e\n", at); end_worker(); stop_worker()
		:: printf("a process crashes, worker %e\n", at); stop_worker(); lose_shared_memory()
		:: !conf_error -> restart(normal)
		:: !conf_error -> restart(no_worker)
		:: !conf_error -> restart(no_library)
		:: !conf_error && !no_room -> no_room = 1; restart(normal)
		:: !conf_error && !no_room -> no_room = 1; restart(no_worker)
		:: f_original != 0 -> printf("the state file is lost\n"); own_file_lost()
		fi }
	:: atomic { !quiet && conf_error && SETTLED -> conf_error = 0; printf("the error is corrected\n") }
	:: atomic { !quiet && (!conf_error || SETTLED) ->
		quiet = 1; conf_error = 0; pm_signal = pm_signal || was_error; printf("no more acts, no more trouble\n");
		break }
	od
}

init
{
	atomic { read(pm); run postmaster(); run worker(); run administrator(); run trouble() }
}
