//! A small HTTP server on this machine that misbehaves on demand.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What a client asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// The `N` of `Range: bytes=N-`.
    pub(crate) range_start: Option<usize>,
    pub(crate) user_agent: Option<String>,
}

/// What the server does with a request.
pub(crate) enum Reply {
    /// The content, from where the client asks.
    Content(Vec<u8>),
    /// The whole content, whatever the client asks.
    IgnoreRange(Vec<u8>),
    /// The content from where the client asks, but the connection ends after so many bytes of it.
    CutAfter(usize, Vec<u8>),
    /// The content from so many bytes after where the client asks.
    WrongRange(usize, Vec<u8>),
    /// The content without its length, to the end of the connection.
    WithoutLength(Vec<u8>),
    /// Another address.
    Redirect(String),
    /// A status line such as `404 Not Found`.
    Status(&'static str),
    /// A connection that stays open and silent for this long.
    Silence(std::time::Duration),
}

/// Serves until the test ends.
pub(crate) struct Server {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub(crate) fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                thread::spawn(move || {
                    // A client may hang up at any time; the test judges what the client makes of it.
                    let _ = serve(stream?, &log, &*answer);
                    std::io::Result::Ok(())
                });
            }
        });
        Self { address, requests }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<Request>>,
    answer: &dyn Fn(&Request) -> Reply,
) -> std::io::Result<()> {
    let request = read_request(&stream)?;
    log.lock().unwrap().push(request.clone());
    let start = request.range_start;
    match answer(&request) {
        Reply::Content(content) => send(&mut stream, start, &content, usize::MAX),
        Reply::IgnoreRange(content) => send(&mut stream, None, &content, usize::MAX),
        Reply::CutAfter(count, content) => send(&mut stream, start, &content, count),
        Reply::WrongRange(shift, content) => send(
            &mut stream,
            start.map(|start| start + shift),
            &content,
            usize::MAX,
        ),
        Reply::WithoutLength(content) => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
            stream.write_all(&content)
        }
        Reply::Redirect(address) => write!(
            stream,
            "HTTP/1.1 302 Found\r\nLocation: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ),
        Reply::Status(status) => write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ),
        Reply::Silence(duration) => {
            thread::sleep(duration);
            Ok(())
        }
    }
}

fn read_request(stream: &TcpStream) -> std::io::Result<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    let mut request = Request {
        path: first.split(' ').nth(1).unwrap_or_default().into(),
        range_start: None,
        user_agent: None,
    };
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let start = value
                    .trim()
                    .strip_prefix("bytes=")
                    .and_then(|range| range.strip_suffix('-'));
                request.range_start = start.and_then(|start| start.parse().ok());
            }
            "user-agent" => request.user_agent = Some(value.trim().into()),
            _ => {}
        }
    }
    Ok(request)
}

/// Sends at most `limit` bytes of what the header announces.
fn send(
    stream: &mut TcpStream,
    start: Option<usize>,
    content: &[u8],
    limit: usize,
) -> std::io::Result<()> {
    let total = content.len();
    let body = &content[start.unwrap_or(0).min(total)..];
    match start {
        Some(start) if start >= total => write!(
            stream,
            "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{total}\r\n"
        )?,
        Some(start) => write!(
            stream,
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {start}-{}/{total}\r\n",
            total - 1
        )?,
        None => write!(stream, "HTTP/1.1 200 OK\r\n")?,
    }
    write!(
        stream,
        "Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body[..limit.min(body.len())])
}
