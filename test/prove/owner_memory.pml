/*
 * test/prove/owner_memory.pml
 *	  The worker as it was before the note was the only proof (commit d2acf73):
 *	  policy/owner.c, server/act.c, config.c, start.c, worker.c.
 *
 * Memory tells who removed the line: "returning" is the value that is about to
 * return, and "restored" of the postmaster what the start-up check did.  When
 * the files were read last is idealized: each process knows exactly what they
 * said then.
 */

byte configured;				/* what postgresql.conf said, as far as handled */
byte returning;
byte f_configured;
byte f_returning;
byte restored_from;				/* static variables of the postmaster */
byte restored_to;
bit first;						/* the worker took no sample yet */
bit blamed;						/* by this sample */
bit checked;					/* the start-up check has changed the file */
bit declined;					/* a return was not finished, and still is "returning" */

#define SIZE_READ	(w.in_auto -> w.value : 0)
#define NO_CHANGE	(DISK_WRITTEN || (line == SIZE_READ && w.note != WRITTEN))
#define ORIGINAL_LINE (by_as -> original : 0)
#define WAITS		(!NO_CHANGE && (returning == 0 || line != ORIGINAL_LINE))
#define OWN_WAITS	(DISK_WRITTEN && line != SIZE_READ)
#define EDIT		(w.conf != configured && configured != 0 && own != 0 && !by_as)

inline lose_shared_memory_too() { configured = 0; returning = 0 }
inline start_too() { restored_from = 0; restored_to = 0 }
inline own_file_lost() { f_own = 0; f_original = 0; f_by_as = 0; f_configured = 0; f_returning = 0 }

inline save()
{
	if
	:: save_common(); f_configured = configured; f_returning = returning
	:: !quiet
	fi
}

inline end_worker() { save() }

inline adopt()
{
	original = w.value; own = 0; returning = 0; by_as = w.in_auto; configured = w.conf
}

inline original_is_back()
{
	must(CLAIMED, !(w.in_auto && w.admins_line));
	must(DECLINED, !declined || !(w.in_auto && w.admins_line));
	original = w.value; own = 0; returning = 0; declined = 0
}

inline observe()
{
	printf("the worker sees %d, note %d (%d, original %d, by_as %d); own %d, original %d, by_as %d, returning %d\n",
		w.value, w.note, w.about, w.original, w.by_as, own, original, by_as, returning);
	blamed = 0;
	if
	:: w.note == WRITTEN ->
		must(CLAIMED, !(w.in_auto && w.admins_line));
		if
		:: original == 0 -> configured = (w.by_as -> w.conf : w.original)
		:: else
		fi;
		if
		:: own != w.value -> returning = 0
		:: else
		fi;
		original = w.original; by_as = w.by_as; own = w.value
	:: w.note != WRITTEN && original == 0 -> adopt()
	:: w.note != WRITTEN && original != 0 && w.value == returning -> original_is_back()
	:: w.note != WRITTEN && original != 0 && w.value != returning && w.value == original && own == 0 ->
		by_as = w.in_auto
	:: w.note != WRITTEN && original != 0 && w.value != returning && (w.value != original || own != 0) ->
		blame();
		must(RESTORED_START, !checked || w.admins_line || w.value != original);
		adopt(); blamed = 1
	fi;
	if
	:: EDIT
	:: else -> configured = w.conf
	fi;
	must(NO_WAY, (own != 0) == (w.note == WRITTEN) && original != 0)
}

inline start_worker()
{
	printf("a worker starts\n");
	inherit();
	if
	:: !loaded ->
		load_common(); configured = f_configured; returning = f_returning;
		/* record what the start-up check did */
		if
		:: restored_from != 0 && w.value == restored_to && (own != 0 -> own : original) != restored_to ->
			original_is_back(); save()
		:: else
		fi
	:: else
	fi;
	first = 1;
	at = idle
}

inline check_room()
{
	target = (pm.by_as -> pm.original : conf);
	if
	:: target < pm.value ->
		restored_from = pm.value; restored_to = target;
		if
		:: note_by_as = pm.by_as; put(NONE, target, 0, note_by_as); checked = 1; read(pm)
		:: !quiet -> pm.value = target; pm.in_auto = 0; pm.note = NONE; pm.about = 0; pm.original = 0; pm.by_as = 0; pm.invalid = 1
		fi
	:: else
	fi;
	target = 0
}

inline end_act() { at = idle; target = 0; restoring = 0 }

/* Say in the state file what will be in effect, before our line is removed. */
inline begin_return()
{
	declined = 0;
	if
	:: own == 0 && !OWN_WAITS -> must(REVERTED, !DISK_WRITTEN && w.note != WRITTEN)
	:: else ->
		returning = (by_as -> original : w.conf);
		save();
		restoring = 1; at = to_write
	fi
}

inline sample()
{
	observe();
	samples = (quiet -> samples + 1 : 0);
	if
	:: EDIT && (!quiet || (samples != 4 && samples != 8)) -> first = 0; begin_return()
	/* finish_return(): unless it makes way for an edit, and walsizer is disabled */
	:: first && !blamed && !EDIT && returning != 0 ->
		first = 0;
		if
		:: begin_return()
		:: !quiet && !by_as && configured != 0 && returning != configured -> declined = 1
		fi
	:: (!first || blamed || EDIT || returning == 0) &&
	   (!quiet || (samples != 4 && samples != 8 && !EDIT)) -> first = 0; save()
	:: !quiet ->
		first = 0;
		if
		:: target = 2
		:: target = 3
		fi;
		if
		:: target >= original && target != w.value -> at = to_write
		:: else -> target = 0
		fi
	:: !quiet || samples == 4 -> first = 0; begin_return()
	:: quiet && samples == 8 -> at = finished
	fi;
	blamed = 0
}

inline write()
{
	if
	:: !restoring -> put(WRITTEN, target, original, by_as)
	:: restoring -> put(NONE, original, 0, by_as)
	fi;
	at = to_signal
}

/* It was not written. */
inline fail()
{
	if
	:: restoring && !(!DISK_WRITTEN && !WAITS) -> returning = 0; save()
	:: else
	fi;
	end_act()
}

inline step()
{
	if
	:: at == idle && w_signal -> reread()
	:: at == idle && !(quiet && w_signal) -> sample()
	:: at == to_write ->
		if
		:: WAITS -> fail()
		:: !WAITS -> write()
		:: !quiet -> fail()
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
		:: restoring && !conf_error && (ORIGINAL_LINE == 0 || w.value == ORIGINAL_LINE) ->
			original_is_back(); must(REVERTED, w.note != WRITTEN)
		:: restoring && !conf_error && ORIGINAL_LINE != 0 && w.value != ORIGINAL_LINE ->
			returning = 0
		:: !restoring && !conf_error && w.value == target -> own = target; returning = 0
		:: else
		fi;
		save();
		end_act()
	:: at == to_wait && !quiet -> end_act()
	fi
}
