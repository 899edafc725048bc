// The floor of HTTP/2 in cleartext over epoll: cached header blocks, one read and one write per
// event; of responses only the ends of streams are counted (RFC 9113).
//   closed_h2 PORT CONNECTIONS STREAMS SECONDS
#include "bare.h"
#include <endian.h>

enum { DATA, HEADERS, RST_STREAM = 3, SETTINGS, GOAWAY = 7, ACK = 1, END_STREAM = 1, FRAME = 9 };
enum { WINDOW = 1 << 30 };

struct connection {
  int fd;
  uint32_t stream;         // of the next request
  uint64_t unread;         // bytes of DATA that no WINDOW_UPDATE has given back
  size_t skip, head_len;   // of a payload to come; of a frame's header that has come
  unsigned char head[FRAME];
  size_t out_len;
  unsigned char out[1 << 16];
};

static void put(struct connection *c, const void *bytes, size_t len) {
  if (c->out_len + len > sizeof c->out) { fprintf(stderr, "too many requests at once\n"); exit(1); }
  memcpy(c->out + c->out_len, bytes, len);
  c->out_len += len;
}

static void put_window(struct connection *c, uint32_t more) {
  unsigned char frame[13] = {0, 0, 4, 8};
  *(uint32_t *)(frame + FRAME) = htobe32(more);
  put(c, frame, sizeof frame);
}

// Literal with indexing once, then all fields by their index (RFC 7541): GET http://127.0.0.1/.
static void put_request(struct connection *c) {
  static const unsigned char first[] = "\x82\x86\x84\x41\x09" "127.0.0.1";
  static const unsigned char again[] = "\x82\x86\x84\xbe";
  size_t len = c->stream == 1 ? sizeof first - 1 : sizeof again - 1;
  unsigned char frame[FRAME] = {0, 0, len, HEADERS, 5};
  *(uint32_t *)(frame + 5) = htobe32(c->stream);
  put(c, frame, sizeof frame);
  put(c, c->stream == 1 ? first : again, len);
  c->stream += 2;
}

static void flush(struct connection *c) {
  if (c->out_len && write(c->fd, c->out, c->out_len) != (ssize_t)c->out_len) die("write");
  c->out_len = 0;
}

// Takes frames apart; how many streams ended.
static long feed(struct connection *c, const unsigned char *b, size_t len) {
  long ended = 0;
  while (len) {
    size_t n = c->skip < len ? c->skip : len;
    c->skip -= n, b += n, len -= n;
    if (!len) break;
    n = FRAME - c->head_len < len ? FRAME - c->head_len : len;
    memcpy(c->head + c->head_len, b, n);
    c->head_len += n, b += n, len -= n;
    if (c->head_len < FRAME) break;
    c->head_len = 0;
    unsigned char *h = c->head;
    c->skip = h[0] << 16 | h[1] << 8 | h[2];
    if (h[3] == DATA) c->unread += c->skip;
    if ((h[3] == DATA || h[3] == HEADERS) && h[4] & END_STREAM) ended++;
    if (h[3] == SETTINGS && !(h[4] & ACK)) put(c, "\0\0\0\x04\x01\0\0\0\0", FRAME);
    if (h[3] == RST_STREAM || h[3] == GOAWAY) {
      fprintf(stderr, "the server ends streams\n");
      exit(1);
    }
  }
  if (c->unread >= WINDOW / 2) {
    put_window(c, c->unread);
    c->unread = 0;
  }
  return ended;
}

int main(int argc, char **argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: closed_h2 PORT CONNECTIONS STREAMS SECONDS\n");
    return 2;
  }
  static unsigned char b[128 << 10];
  int port = atoi(argv[1]), n = atoi(argv[2]), streams = atoi(argv[3]), ep = epoll_create1(0);
  struct connection *all = calloc(n, sizeof *all);
  struct epoll_event e[256];
  long requests = 0;
  int64_t start = now_ns(), end = start + (int64_t)(atof(argv[4]) * 1e9), now = start;
  for (int i = 0; i < n; i++) {
    struct connection *c = all + i;
    struct epoll_event in = {.events = EPOLLIN | EPOLLET, .data.ptr = c};
    c->fd = dial(port);
    c->stream = 1;
    epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &in);
    // SETTINGS_INITIAL_WINDOW_SIZE, so that no window is ever the limit.
    static const char hello[] =
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x04\x40\0\0\0";
    put(c, hello, sizeof hello - 1);
    put_window(c, WINDOW);
    for (int s = 0; s < streams; s++) put_request(c);
    flush(c);
  }
  while ((now = now_ns()) < end) {
    int ready = epoll_wait(ep, e, 256, 100);
    for (int k = 0; k < ready; k++) {
      struct connection *c = e[k].data.ptr;
      ssize_t r;
      do {
        if ((r = read(c->fd, b, sizeof b)) <= 0) {
          if (r < 0 && errno == EAGAIN) break;
          die("read");
        }
        long ended = feed(c, b, r);
        requests += ended;
        while (ended--) put_request(c);
      } while (r == sizeof b);
      flush(c);
    }
  }
  print_common(requests, (now - start) / 1e9);
  printf("}\n");
}
