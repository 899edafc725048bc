//! A page over HTTP/1.1 for monitoring systems, made for each request. It serves one connection at
//! a time, on its own thread. A client that is slow or sends too much is cut off.

use knee_engine::{interrupt, threads};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longest request, in bytes.
const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// Reads per request.
const READS_MAX: usize = 8;
/// Time limit of each read and write.
const PATIENCE: Duration = Duration::from_millis(500);
/// Longest wait for a scrape.
const LINGER_MAX: Duration = Duration::from_secs(15);
/// The header by which Prometheus, and what scrapes as it does, is known.
const SCRAPE_HEADER: &str = "X-Prometheus-Scrape-Timeout-Seconds";
/// Pause after a failed accept (out of descriptors).
const PAUSE: Duration = Duration::from_millis(50);

/// The page that is served.
pub struct ExposedPage {
    /// Path, such as `/metrics`.
    pub path: &'static str,
    /// Media type.
    pub content_type: &'static str,
    /// Makes the page, on the server's thread.
    pub make: Box<dyn Fn() -> String + Send>,
}

impl fmt::Debug for ExposedPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("path", &self.path).finish()
    }
}

/// The scrapes of a page by a monitoring system.
#[derive(Clone, Copy, Debug, Default)]
struct Scrapes {
    last: Option<Instant>,
    /// Time between the last two.
    apart: Option<Duration>,
}

/// A server of one page, until dropped.
#[derive(Debug)]
pub struct Exposition {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    scrapes: Arc<Mutex<Scrapes>>,
    thread: Option<JoinHandle<()>>,
}

impl Exposition {
    /// Listens; port 0 picks a free one.
    ///
    /// # Errors
    /// The address is in use, not permitted or not this machine's; out of descriptors or threads.
    pub fn start(address: SocketAddr, page: ExposedPage) -> io::Result<Exposition> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let scrapes = Arc::<Mutex<Scrapes>>::default();
        let server = PageServer { page, stop: Arc::clone(&stop), scrapes: Arc::clone(&scrapes) };
        let thread = thread::Builder::new()
            .name("exposition".to_string())
            .spawn(move || server.serve(&listener))
            .map_err(|e| threads::error(&e))?;
        Ok(Exposition { address, stop, scrapes, thread: Some(thread) })
    }

    /// Time until the next scrape at the latest; `None`: there was no scrape.
    pub fn until_scrape(&self) -> Option<Duration> {
        let Scrapes { last, apart } = *lock(&self.scrapes);
        let next = last? + apart.map_or(LINGER_MAX, |apart| apart + PATIENCE);
        Some(next.saturating_duration_since(Instant::now()).min(LINGER_MAX))
    }

    /// Waits for the next scrape, for `limit` at the most, or until a signal comes meanwhile.
    pub fn await_scrape(&self, limit: Duration) {
        let state = || (lock(&self.scrapes).last, interrupt::is_raised());
        let (begin, before) = (Instant::now(), state());
        while state() == before && begin.elapsed() < limit {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Exposition {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // It waits in accept(2), from which a connection wakes it. Where none can be made (out of
        // descriptors) the thread ends with the process.
        if TcpStream::connect_timeout(&self.address, PATIENCE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn lock(scrapes: &Mutex<Scrapes>) -> MutexGuard<'_, Scrapes> {
    scrapes.lock().unwrap_or_else(PoisonError::into_inner)
}

struct PageServer {
    page: ExposedPage,
    stop: Arc<AtomicBool>,
    scrapes: Arc<Mutex<Scrapes>>,
}

impl PageServer {
    fn serve(&self, listener: &TcpListener) {
        while !self.stop.load(Ordering::Relaxed) {
            match listener.accept() {
                // An error of one client does not concern the others.
                Ok((client, _)) => drop(self.answer(client)),
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    fn answer(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_read_timeout(Some(PATIENCE))?;
        client.set_write_timeout(Some(PATIENCE))?;
        let mut request = Vec::new();
        let mut piece = [0; 2048];
        for _ in 0..READS_MAX {
            let n = client.read(&mut piece)?;
            request.extend_from_slice(&piece[..n]);
            if let Some(page_request) = parse_request(&request, &self.page) {
                client.write_all(&respond(page_request, &self.page))?;
                if page_request == PageRequest::Scrape {
                    self.scraped();
                }
                return Ok(());
            }
            if n == 0 || self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if request.len() > REQUEST_BYTES_MAX {
                break;
            }
        }
        client.write_all(&respond(PageRequest::Nonsense, &self.page))
    }

    fn scraped(&self) {
        let (mut scrapes, now) = (lock(&self.scrapes), Instant::now());
        scrapes.apart = scrapes.last.map(|last| now - last);
        scrapes.last = Some(now);
    }
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageRequest {
    Page,
    /// The page, by a monitoring system.
    Scrape,
    Head,
    Elsewhere,
    OtherMethod,
    Nonsense,
}

/// Reads a request; `None`: it is not complete yet.
fn parse_request(request: &[u8], page: &ExposedPage) -> Option<PageRequest> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut headers);
    let Ok(status) = parsed.parse(request) else {
        return Some(PageRequest::Nonsense);
    };
    if status.is_partial() {
        return None;
    }
    let path = parsed.path.unwrap_or_default();
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let is_scrape = parsed.headers.iter().any(|h| h.name.eq_ignore_ascii_case(SCRAPE_HEADER));
    Some(match (parsed.method.unwrap_or_default(), path == page.path) {
        (_, false) => PageRequest::Elsewhere,
        ("GET", true) if is_scrape => PageRequest::Scrape,
        ("GET", true) => PageRequest::Page,
        ("HEAD", true) => PageRequest::Head,
        _ => PageRequest::OtherMethod,
    })
}

fn respond(request: PageRequest, page: &ExposedPage) -> Vec<u8> {
    let plain = "text/plain; charset=utf-8";
    let (status, content_type, body) = match request {
        PageRequest::Page | PageRequest::Scrape | PageRequest::Head => {
            ("200 OK", page.content_type, (page.make)())
        }
        PageRequest::Elsewhere => ("404 Not Found", plain, format!("see {}\n", page.path)),
        PageRequest::OtherMethod => ("405 Method Not Allowed", plain, "only GET\n".to_string()),
        PageRequest::Nonsense => ("400 Bad Request", plain, "no HTTP request\n".to_string()),
    };
    let length = body.len();
    let mut response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    if request != PageRequest::Head {
        response.push_str(&body);
    }
    response.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Exposition {
        let page = ExposedPage {
            path: "/metrics",
            content_type: "text/x-test",
            make: Box::new(|| "all is well\n".to_string()),
        };
        Exposition::start(([127, 0, 0, 1], 0).into(), page).unwrap()
    }

    fn answered(server: &Exposition, request: &[u8]) -> String {
        let mut client = TcpStream::connect(server.address()).unwrap();
        client.write_all(request).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_page_is_there_and_nothing_else() {
        let server = start();
        for (request, status, body) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200", "all is well\n"),
            ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200", "all is well\n"),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", "200", "\r\n\r\n"),
            ("GET / HTTP/1.1\r\n\r\n", "404", "see /metrics\n"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405", "only GET\n"),
            ("\0\0\r\n\r\n", "400", "no HTTP request\n"),
        ] {
            let answer = answered(&server, request.as_bytes());
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
            assert!(answer.ends_with(body), "{answer}");
        }
        let answer = answered(&server, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.contains("Content-Type: text/x-test\r\n"), "{answer}");
        assert!(answer.contains("Content-Length: 12\r\n"), "{answer}");
    }

    #[test]
    fn who_says_nothing_or_goes_keeps_nobody_waiting_for_long() {
        let server = start();
        let _silent = TcpStream::connect(server.address()).unwrap();
        drop(TcpStream::connect(server.address()).unwrap());
        let answer = answered(&server, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    #[test]
    fn its_port_is_free_again_when_it_is_dropped() {
        let server = start();
        let address = server.address();
        drop(server);
        let page = ExposedPage { path: "/", content_type: "", make: Box::new(String::new) };
        let again = Exposition::start(address, page);
        assert!(again.is_ok(), "{again:?}");
    }
}
