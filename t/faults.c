/*-------------------------------------------------------------------------
 *
 * faults.c
 *	  Preloaded into the servers of t/026_faults.pl: calls of the C library
 *	  fail as if the operating system had an error.
 *
 * The file $WALSIZER_FAULTS has one Fault, which the test writes.  It is mapped
 * into every process of the server.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#define ANY_PROCESS		(-1)

typedef struct Fault
{
	int32_t		pid;			/* whose calls fail; 0: nobody's */
	int32_t		error;			/* errno; 0: read or write less than asked for */
	int32_t		skip;			/* number of calls that succeed first */
	int32_t		times;			/* number of calls that fail then */
	int32_t		hits;			/* number of calls that have failed */
	char		call[16];
	char		path[64];		/* what the file's path ends with */
} Fault;

#define REAL(name)		((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

static volatile Fault *fault = NULL;

static void __attribute__((constructor))
map_fault(void)
{
	const char *file = getenv("WALSIZER_FAULTS");
	int			fd = file != NULL ? REAL(open) (file, O_RDWR) : -1;
	void	   *mapped;

	if (fd < 0)
		return;
	mapped = mmap(NULL, sizeof(Fault), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REAL(close) (fd);
	if (mapped != MAP_FAILED)
		fault = mapped;
}

static bool
is_armed(const char *call)
{
	return fault != NULL && fault->pid != 0 &&
		(fault->pid == ANY_PROCESS || fault->pid == getpid()) &&
		strcmp(call, (const char *) fault->call) == 0;
}

/* Is this call of that file to fail?  Sets errno then. */
static bool
fails(const char *call, const char *path)
{
	size_t		length;
	size_t		end;

	if (!is_armed(call))
		return false;
	length = strlen(path);
	end = strlen((const char *) fault->path);
	if (length < end || strcmp(path + length - end, (const char *) fault->path) != 0)
		return false;
	if (fault->skip > 0)
	{
		fault->skip--;
		return false;
	}
	if (fault->hits >= fault->times)
		return false;
	fault->hits++;
	errno = fault->error;
	return true;
}

static bool
fails_fd(const char *call, int fd)
{
	char		link[64];
	char		path[1024];
	ssize_t		length;

	if (!is_armed(call))
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	return fails(call, path);
}

int
open(const char *path, int flags,...)
{
	va_list		more;
	mode_t		mode;

	va_start(more, flags);
	mode = va_arg(more, mode_t);
	va_end(more);
	return fails("open", path) ? -1 : REAL(open) (path, flags, mode);
}

FILE *
fopen(const char *restrict path, const char *restrict mode)
{
	return fails("fopen", path) ? NULL : REAL(fopen) (path, mode);
}

/* A short read has no error. */
ssize_t
read(int fd, void *buffer, size_t size)
{
	if (fails_fd("read", fd))
		return fault->error != 0 ? -1 : REAL(read) (fd, buffer, size / 2);
	return REAL(read) (fd, buffer, size);
}

ssize_t
write(int fd, const void *buffer, size_t size)
{
	if (fails_fd("write", fd))
		return fault->error != 0 ? -1 : REAL(write) (fd, buffer, size / 2);
	return REAL(write) (fd, buffer, size);
}

/* The descriptor is gone in any case. */
int
close(int fd)
{
	bool		failed = fails_fd("close", fd);
	int			error = errno;
	int			result = REAL(close) (fd);

	if (!failed)
		return result;
	errno = error;
	return -1;
}

int
fsync(int fd)
{
	return fails_fd("fsync", fd) ? -1 : REAL(fsync) (fd);
}

int
fstat(int fd, struct stat *st)
{
	return fails_fd("fstat", fd) ? -1 : REAL(fstat) (fd, st);
}

int
lstat(const char *restrict path, struct stat *restrict st)
{
	return fails("lstat", path) ? -1 : REAL(lstat) (path, st);
}

int
access(const char *path, int mode)
{
	return fails("access", path) ? -1 : REAL(access) (path, mode);
}

int
rename(const char *from, const char *to)
{
	return fails("rename", to) ? -1 : REAL(rename) (from, to);
}

DIR *
opendir(const char *path)
{
	return fails("opendir", path) ? NULL : REAL(opendir) (path);
}

struct dirent *
readdir(DIR *dir)
{
	return fails_fd("readdir", dirfd(dir)) ? NULL : REAL(readdir) (dir);
}

int
statvfs(const char *restrict path, struct statvfs *restrict st)
{
	return fails("statvfs", path) ? -1 : REAL(statvfs) (path, st);
}

int
statfs(const char *path, struct statfs *st)
{
	return fails("statfs", path) ? -1 : REAL(statfs) (path, st);
}

int
kill(pid_t pid, int signal_number)
{
	return signal_number == SIGHUP && fails("kill", "") ? -1 : REAL(kill) (pid, signal_number);
}

/* A sanitizer has its own. */
#ifdef WITH_MALLOC
extern void *__libc_malloc(size_t size);

/* Only for the state file: the C library needs a little now and then. */
#define LARGE	((size_t) 1024 * 1024)

void *
malloc(size_t size)
{
	return size >= LARGE && fails("malloc", "") ? NULL : __libc_malloc(size);
}
#endif
