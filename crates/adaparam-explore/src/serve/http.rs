//! Requests and answers of HTTP/1.1: the little of it that one page needs, and nothing that is not bounded.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a request before its body.
const MOST_HEAD: usize = 8 * 1024;
/// Bytes of a body.
pub(crate) const MOST_BODY: usize = 64 * 1024;
/// Lines of a head.
const MOST_LINES: usize = 64;
/// A request must be there after this long, whatever its pace.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at whether to stop.
const LOOK_UP: Duration = Duration::from_millis(200);
/// For so long, and up to so many bytes, the rest of a refused request is taken and forgotten.
const HEARING: Duration = Duration::from_secs(2);
const MOST_HEARD: usize = 16 * 1024 * 1024;

/// What somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// Whether something is posted; else it is a `GET`.
    pub(crate) is_post: bool,
    /// Without what follows a question mark.
    pub(crate) path: String,
    /// To whom the browser thinks it speaks.
    pub(crate) host: String,
    /// The page that asks, where the browser tells.
    pub(crate) origin: Option<String>,
    /// What is posted.
    pub(crate) body: Vec<u8>,
}

/// Why a request is not answered: a status and a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) why: &'static str,
}

impl Refusal {
    pub(crate) fn new(status: u16, why: &'static str) -> Self {
        Self { status, why }
    }
}

/// Reads a request from a connection, unless `stop` is set before it is there.
pub(crate) fn receive(stream: &mut TcpStream, stop: &AtomicBool) -> Result<Request, Refusal> {
    let deadline = Instant::now() + PATIENCE;
    read(|buffer| read_by(deadline, stop, stream, buffer))
}

/// Reads what comes until a deadline. Browsers open connections that they may never use; nobody waits for these at the end.
fn read_by(
    deadline: Instant,
    stop: &AtomicBool,
    stream: &mut TcpStream,
    buffer: &mut [u8],
) -> std::io::Result<usize> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.load(Ordering::Relaxed) {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left.min(LOOK_UP)))?;
        match stream.read(buffer) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            read => return read,
        }
    }
}

/// Takes what is left of a refused request. A connection that ends with unread bytes is broken off, and whoever is still
/// sending would never see why.
pub(crate) fn hear_out(stream: &mut TcpStream, stop: &AtomicBool) -> std::io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let deadline = Instant::now() + HEARING;
    let (mut buffer, mut heard) = ([0; 4096], 0);
    while heard < MOST_HEARD {
        match read_by(deadline, stop, stream, &mut buffer)? {
            0 => break,
            count => heard += count,
        }
    }
    Ok(())
}

/// Reads a request piece by piece.
fn read(mut more: impl FnMut(&mut [u8]) -> std::io::Result<usize>) -> Result<Request, Refusal> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let mut next = |bytes: &mut Vec<u8>| match more(&mut buffer) {
        Ok(0) => Err(Refusal::new(400, "the request ends before it is whole")),
        Ok(count) => {
            bytes.extend_from_slice(&buffer[..count]);
            Ok(())
        }
        Err(_) => Err(Refusal::new(408, "the request did not come in time")),
    };
    let head_end = loop {
        if let Some(end) = end_of_head(&bytes) {
            break end;
        }
        if bytes.len() > MOST_HEAD {
            return Err(Refusal::new(431, "the head of the request is too long"));
        }
        next(&mut bytes)?;
    };
    if head_end > MOST_HEAD {
        return Err(Refusal::new(431, "the head of the request is too long"));
    }
    let (mut request, length) = parse_head(&bytes[..head_end])?;
    let mut body = bytes.split_off(head_end);
    if length > MOST_BODY {
        return Err(Refusal::new(413, "the request is too long"));
    }
    while body.len() < length {
        next(&mut body)?;
    }
    body.truncate(length);
    request.body = body;
    Ok(request)
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let mut windows = bytes.windows(4);
    windows
        .position(|four| four == b"\r\n\r\n")
        .map(|at| at + 4)
}

/// A request without its body, and the body's length.
fn parse_head(head: &[u8]) -> Result<(Request, usize), Refusal> {
    let bad = |why| Refusal::new(400, why);
    let head = str::from_utf8(head).map_err(|_| bad("the head is no text"))?;
    let is_plain =
        |letter: char| letter == '\r' || letter == '\n' || letter == '\t' || !letter.is_control();
    if !head.chars().all(is_plain) {
        return Err(bad("the head has control characters"));
    }
    let mut lines = head.trim_end_matches("\r\n").split("\r\n");
    let first = lines.next().unwrap_or_default();
    let [method, target, version] = first
        .split(' ')
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| bad("the first line must be a method, a path and a version"))?;
    let is_post = match method {
        "GET" => false,
        "POST" => true,
        _ => return Err(Refusal::new(405, "only GET and POST are known")),
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Err(Refusal::new(505, "only HTTP/1.1 is spoken here"));
    }
    if !target.starts_with('/') {
        return Err(bad("the path must begin with a stroke"));
    }
    let path = target.split('?').next().unwrap_or_default();
    let (mut host, mut origin, mut length) = (None, None, None);
    for (count, line) in lines.enumerate() {
        if count >= MOST_LINES {
            return Err(Refusal::new(431, "the head has too many lines"));
        }
        let (name, value) = line
            .split_once(':')
            .ok_or(bad("a line of the head has no colon"))?;
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(bad("a line of the head has no name"));
        }
        let value = value.trim();
        let once = |place: &mut Option<String>| match place.replace(value.to_owned()) {
            None => Ok(()),
            Some(_) => Err(bad("a line of the head is there twice")),
        };
        match name.to_ascii_lowercase().as_str() {
            "host" => once(&mut host)?,
            "origin" => once(&mut origin)?,
            "content-length" => once(&mut length)?,
            "transfer-encoding" => return Err(Refusal::new(501, "bodies in pieces are not taken")),
            _ => {}
        }
    }
    let length = match length {
        None => 0,
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            digits.parse().map_err(|_| bad("the length is no number"))?
        }
        Some(_) => return Err(bad("the length is no number")),
    };
    let request = Request {
        is_post,
        path: path.to_owned(),
        host: host.ok_or(bad("the host is not named"))?,
        origin,
        body: Vec::new(),
    };
    Ok((request, length))
}

/// Lines that every answer has: nothing is kept, framed, guessed at or told to others.
const ALWAYS: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
                      Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n";

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Error",
    }
}

/// Sends a whole answer.
pub(crate) fn answer(
    out: &mut impl Write,
    status: u16,
    kind: &str,
    body: &[u8],
) -> std::io::Result<()> {
    write!(
        out,
        "HTTP/1.1 {status} {}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\n{ALWAYS}\r\n",
        reason(status),
        body.len()
    )?;
    out.write_all(body)?;
    out.flush()
}

/// Sends a refusal.
pub(crate) fn refuse(out: &mut impl Write, refusal: Refusal) -> std::io::Result<()> {
    let body = format!("{}\n", refusal.why);
    answer(out, refusal.status, "text/plain", body.as_bytes())
}

/// Begins an answer that goes on: one event after the other until the connection ends.
pub(crate) fn begin_events(out: &mut impl Write) -> std::io::Result<()> {
    write!(
        out,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n{ALWAYS}\r\n"
    )?;
    out.flush()
}

/// Sends an event.
pub(crate) fn event(out: &mut impl Write, data: &serde_json::Value) -> std::io::Result<()> {
    // JSON has no line breaks of its own.
    write!(out, "data: {data}\n\n")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Request, Refusal> {
        let mut bytes = text.as_bytes();
        // Three bytes at a time, as slow networks have it.
        read(|buffer| {
            let count = bytes.len().min(3);
            buffer[..count].copy_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
            Ok(count)
        })
    }

    #[test]
    fn a_request_is_read_whatever_its_pieces() {
        let request = parsed(
            "POST /a/b?c=d HTTP/1.1\r\nHost: localhost:1\r\nContent-Length: 5\r\n\r\nhello, more",
        )
        .unwrap();
        assert!(request.is_post);
        assert_eq!(request.path, "/a/b");
        assert_eq!(request.host, "localhost:1");
        assert_eq!(request.body, b"hello");
        let request = parsed("GET / HTTP/1.1\r\nhost: a\r\norigin: http://b\r\n\r\n").unwrap();
        assert_eq!(
            (request.is_post, request.origin.as_deref()),
            (false, Some("http://b"))
        );
    }

    #[test]
    fn what_is_no_request_is_refused_by_its_fault() {
        let status = |text: &str| parsed(text).unwrap_err().status;
        assert_eq!(status("GET / HTTP/1.1\r\nHost: a\r\n"), 400, "not whole");
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), 400, "no host");
        assert_eq!(status("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
        assert_eq!(status("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
        assert_eq!(status("GET / HTTP/1.1\r\nHost a\r\n\r\n"), 400);
        assert_eq!(status("GET / HTTP/1.1\r\nHost: a\u{1}\r\n\r\n"), 400);
        assert_eq!(status("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), 400);
        assert_eq!(status("GET /  HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
        assert_eq!(status("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n"), 405);
        assert_eq!(status("GET / HTTP/2\r\nHost: a\r\n\r\n"), 505);
        let posted =
            |length: &str| status(&format!("POST / HTTP/1.1\r\nHost: a\r\n{length}\r\n\r\n"));
        assert_eq!(posted("Content-Length: -1"), 400);
        assert_eq!(posted("Content-Length: +1"), 400);
        assert_eq!(posted("Content-Length: 99999999999999999999"), 400);
        assert_eq!(posted("Content-Length: 1\r\nContent-Length: 1"), 400);
        assert_eq!(posted("Content-Length: 65537"), 413);
        assert_eq!(posted("Transfer-Encoding: chunked"), 501);
        assert_eq!(posted("Content-Length: 9"), 400, "a body that is not whole");
        let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(MOST_HEAD));
        assert_eq!(status(&long), 431);
        let endless = "a".repeat(3 * MOST_HEAD);
        assert_eq!(status(&endless), 431);
        let many = format!(
            "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
            "a: b\r\n".repeat(MOST_LINES)
        );
        assert_eq!(status(&many), 431);
    }

    #[test]
    fn an_answer_has_its_length_and_forbids_what_is_not_meant() {
        let mut out = Vec::new();
        answer(&mut out, 200, "text/html", "é".as_bytes()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\né"));
        assert!(text.contains("Content-Length: 2\r\n"));
        assert!(text.contains("nosniff") && text.contains("no-store") && text.contains("DENY"));
    }
}
