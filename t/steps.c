/*-------------------------------------------------------------------------
 *
 * steps.c
 *	  Preloaded into the servers of t/024_steps.pl: counts what a process does to
 *	  make its files durable, stops or kills it at one of these steps, and sets
 *	  the system clock.
 *
 * In the directory $WALSIZER_STEPS:
 *
 *	  arm	"PID N SIGNAL": that process gets the signal right before its Nth
 *			step; 0 is for counting only
 *	  log	a line for each step of that process
 *	  clock	seconds by which the system clock is ahead
 *
 * A step is fsync(), rename(), or a SIGHUP to the postmaster.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

extern int	fsync(int fd);

static FILE *
open_file(const char *name, const char *mode)
{
	const char *dir = getenv("WALSIZER_STEPS");
	char		path[1024];

	if (dir == NULL)
		return NULL;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return fopen(path, mode);
}

static void
step(const char *what, const char *object)
{
	static time_t armed;		/* when: a new file begins a new count */
	static long armed_ns;
	static int	steps;
	FILE	   *file = open_file("arm", "r");
	FILE	   *list;
	struct stat st;
	int			pid = 0;
	int			at = 0;
	int			signal_number = 0;

	if (file == NULL)
		return;
	/* the test holds the lock while it removes the file, and reads the log after that */
	if (flock(fileno(file), LOCK_EX) != 0 || fstat(fileno(file), &st) != 0 || st.st_nlink == 0 ||
		fscanf(file, "%d %d %d", &pid, &at, &signal_number) != 3 || pid != getpid())
	{
		fclose(file);
		return;
	}
	if (st.st_mtim.tv_sec != armed || st.st_mtim.tv_nsec != armed_ns)
	{
		armed = st.st_mtim.tv_sec;
		armed_ns = st.st_mtim.tv_nsec;
		steps = 0;
	}
	steps++;
	list = open_file("log", "a");
	if (list != NULL)
	{
		fprintf(list, "%s %s\n", what, object);
		fclose(list);
	}
	fclose(file);
	if (steps == at)
		kill(pid, signal_number);
}

int
fsync(int fd)
{
	static int	(*real) (int) = NULL;
	char		link[64];
	char		path[1024];
	ssize_t		length;

	if (real == NULL)
		real = (int (*) (int)) dlsym(RTLD_NEXT, "fsync");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	step("fsync", path);
	return real(fd);
}

int
rename(const char *from, const char *to)
{
	static int	(*real) (const char *, const char *) = NULL;

	if (real == NULL)
		real = (int (*) (const char *, const char *)) dlsym(RTLD_NEXT, "rename");
	step("rename", to);
	return real(from, to);
}

int
kill(pid_t pid, int signal_number)
{
	static int	(*real) (pid_t, int) = NULL;

	if (real == NULL)
		real = (int (*) (pid_t, int)) dlsym(RTLD_NEXT, "kill");
	if (signal_number == SIGHUP)
		step("sighup", "postmaster");
	return real(pid, signal_number);
}

static long
clock_ahead(void)
{
	FILE	   *file = open_file("clock", "r");
	long		seconds = 0;

	if (file != NULL)
	{
		if (fscanf(file, "%ld", &seconds) != 1)
			seconds = 0;
		fclose(file);
	}
	return seconds;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	static int	(*real) (struct timeval *, void *) = NULL;
	int			result;

	if (real == NULL)
		real = (int (*) (struct timeval *, void *)) dlsym(RTLD_NEXT, "gettimeofday");
	result = real(tv, tz);
	if (result == 0)
		tv->tv_sec += clock_ahead();
	return result;
}

time_t
time(time_t *t)
{
	struct timespec now;
	time_t		result;

	clock_gettime(CLOCK_REALTIME, &now);
	result = now.tv_sec + clock_ahead();
	if (t != NULL)
		*t = result;
	return result;
}
