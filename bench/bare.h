// What every bare loop needs: a clock, connections to 127.0.0.1, one line of JSON at the end.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char REQUEST[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
#define REQUEST_LEN ((ssize_t)sizeof REQUEST - 1)

static void die(const char *what) { perror(what); exit(1); }

static inline int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

// A connected non-blocking socket.
static inline int dial(int port) {
  struct sockaddr_in a = loopback(port);
  int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a)) die("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

// The length of this server's response, header and body, learnt by asking once.
static inline ssize_t response_len(int port) {
  char b[65536];
  ssize_t n, got = 0;
  int fd = dial(port);
  fcntl(fd, F_SETFL, 0);
  if (write(fd, REQUEST, REQUEST_LEN) != REQUEST_LEN) die("write");
  while ((n = read(fd, b + got, sizeof b - 1 - got)) > 0) {
    b[got += n] = 0;
    char *end = strstr(b, "\r\n\r\n"), *len = strcasestr(b, "content-length:");
    if (end && len && got >= end + 4 - b + atol(len + 15)) {
      close(fd);
      return got;
    }
  }
  die("the first response");
  return 0;
}

static double seconds_of(struct timeval t) { return t.tv_sec + t.tv_usec / 1e6; }

// The processor time of this process, user and system.
static inline double cpu_s(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return seconds_of(u.ru_utime) + seconds_of(u.ru_stime);
}

// What either end of a bulk transfer prints.
static inline void print_bulk(uint64_t bytes, double seconds, double cpu) {
  printf("{\"bytes\": %llu, \"seconds\": %.6f, \"cpu_s\": %.6f}\n", (unsigned long long)bytes,
         seconds, cpu);
}

// Opens the JSON object with the fields that all loops share; the caller closes it.
static inline void print_common(long requests, double seconds) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  printf("{\"requests\":%ld,\"seconds\":%.6f,\"cpu_user_s\":%.6f,\"cpu_system_s\":%.6f", requests,
         seconds, seconds_of(u.ru_utime), seconds_of(u.ru_stime));
}
