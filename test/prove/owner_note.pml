/*
 * test/prove/owner_note.pml
 *	  The worker, to which the note is the only proof of what is its own:
 *	  policy/owner.c, server/act.c, config.c, start.c.
 */

/* An administrator's ALTER SYSTEM waits for a reload: not if the note is ours. */
#define WAITS		(!DISK_VALID && (line != (w.in_auto -> w.value : 0) || w.note == WRITTEN))
#define IS_RESTORED	((w.note == RESTORED || w.note == NO_ROOM) && w.value == w.about)
/* a note on disk that is not the one in memory: the reload did not come */
#define UNSEEN		(DISK_VALID && (note != w.note || note_about != w.about))
#define EDITED		(own != 0 && !by_as && w.conf != original)

inline lose_shared_memory_too() { skip }
inline start_too() { skip }
inline own_file_lost() { f_own = 0; f_original = 0; f_by_as = 0 }

inline adopt()
{
	original = w.value; own = 0; by_as = w.in_auto
}

/* Compare the value in effect with what we know. */
inline observe()
{
	printf("the worker sees %d, note %d (%d, original %d, by_as %d); own %d, original %d, by_as %d\n",
		w.value, w.note, w.about, w.original, w.by_as, own, original, by_as);
	if
	:: w.note == WRITTEN ->
		must(CLAIMED, !(w.in_auto && w.admins_line));
		own = w.value; original = w.original; by_as = w.by_as
	:: w.note != WRITTEN && IS_RESTORED && (own != 0 || original == 0) ->
		must(CLAIMED, !(w.in_auto && w.admins_line));
		adopt()
	:: w.note != WRITTEN && !(IS_RESTORED && own != 0) && original == 0 ->
		adopt()
	:: w.note != WRITTEN && original != 0 && own == 0 && w.value == original ->
		by_as = w.in_auto
	:: w.note != WRITTEN && original != 0 && !(IS_RESTORED && own != 0) &&
	   (own != 0 || w.value != original) ->
		if
		:: UNSEEN
		:: else -> blame()
		fi;
		adopt()
	fi;
	must(NO_WAY, (own != 0) == (w.note == WRITTEN) && original != 0)
}

/* Write the state file, which may fail. */
inline save()
{
	if
	:: save_common()
	:: !quiet
	fi
}

/*
 * Remove a note that no longer speaks of the value in effect, once that is
 * remembered.  Not one that waits for a reload.
 */
inline drop()
{
	save();
	if
	:: f_own == 0 && own == 0 && f_original == original && note != NONE &&
	   (w.invalid || w.note != NONE) && (!DISK_VALID || (DISK_RESTORED && !UNSEEN)) ->
		if
		:: clear_note(); printf("the note is dropped\n"); must(LOST, line == wanted)
		:: !quiet
		fi
	:: else
	fi
}

inline end_worker() { save() }

inline start_worker()
{
	printf("a worker starts\n");
	inherit();
	w.conf = conf;
	if
	:: !loaded -> load_common()
	:: else
	fi;
	/* not if the start-up check could change the value in memory only */
	if
	:: UNSEEN && !(w.note == NO_ROOM && DISK_WRITTEN) -> at = to_signal
	:: else -> at = idle
	fi
}

/* No room for our value: restore the original one in the file, or in memory only. */
inline check_room()
{
	target = (pm.by_as -> pm.original : conf);
	if
	:: target < pm.value ->
		if
		:: put(NO_ROOM, target, 0, pm.by_as); read(pm)
		:: !quiet -> pm.value = target; pm.note = NO_ROOM; pm.about = target; pm.original = 0; pm.by_as = 1
		fi
	:: else
	fi;
	target = 0
}

inline end_act() { at = idle; target = 0; restoring = 0 }

/* A pass: observe, and decide what to do. */
inline sample()
{
	observe();
	samples = (quiet -> samples + 1 : 0);
	if
	:: EDITED && (!quiet || (samples != 4 && samples != 8)) ->
		restoring = 1; at = to_write
	:: !quiet || (samples != 4 && samples != 8 && !EDITED) ->
		if			/* a tick; nothing is dropped while a reload is under way */
		:: SETTLED -> drop()
		:: else
		fi
	:: !quiet ->	/* raise or lower */
		if
		:: target = 2
		:: target = 3
		fi;
		if
		:: target >= original && target != w.value -> at = to_write
		:: else -> target = 0
		fi
	:: !quiet || samples == 4 -> /* walsizer_revert() */
		if
		:: own != 0 || DISK_WRITTEN -> restoring = 1; at = to_write
		:: else -> must(REVERTED, !DISK_WRITTEN && w.note != WRITTEN)
		fi
	:: quiet && samples == 8 -> at = finished
	fi
}

/* Write line and note.  A note of ours on disk may be newer than what we know. */
inline write()
{
	size = original; as = by_as;
	if
	:: DISK_WRITTEN -> size = note_original; as = note_by_as
	:: DISK_RESTORED -> size = note_about; as = note_by_as
	:: else
	fi;
	if
	:: !restoring -> put(WRITTEN, target, size, as)
	:: restoring -> target = (as -> size : w.conf); put(RESTORED, target, 0, as)
	fi;
	size = 0; as = 0;
	at = to_signal
}

/* What the worker does next. */
inline step()
{
	if
	:: at == idle && w_signal -> reread()
	:: at == idle && !(quiet && w_signal) -> sample()
	:: at == to_write ->
		if
		:: WAITS -> end_act()
		:: !WAITS -> write()
		:: !quiet -> end_act()		/* the file cannot be written */
		fi
	:: at == to_signal ->
		if
		:: w_signal -> reread()
		:: else
		fi;
		pm_signal = 1;
		at = to_wait
	:: at == to_wait && w_signal ->
		reread();
		if
		:: w.note == (restoring -> RESTORED : WRITTEN) && w.about == target ->
			observe();
			must(REVERTED, !restoring || w.note != WRITTEN);
			save()
		:: else
		fi;
		end_act()
	:: at == to_wait && !quiet -> end_act()	/* it takes too long */
	fi
}
