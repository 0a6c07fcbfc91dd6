//! One address into one file, over as many connections as it takes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;

use ureq::http::{HeaderMap, StatusCode, header};
use ureq::{Agent, Body, Proxy};

use super::{Attempt, Fault, FetchOptions, ProxyChoice};
use crate::error::DataError;

/// What is known of the size beforehand.
#[derive(Debug, Clone, Copy)]
pub(super) enum Size {
    Exactly(u64),
    AtMost(u64),
}

impl Size {
    fn limit(self) -> u64 {
        match self {
            Self::Exactly(bytes) | Self::AtMost(bytes) => bytes,
        }
    }

    fn allows(self, bytes: u64) -> bool {
        match self {
            Self::Exactly(expected) => bytes == expected,
            Self::AtMost(limit) => bytes <= limit,
        }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exactly(bytes) => write!(f, "{bytes} bytes"),
            Self::AtMost(bytes) => write!(f, "at most {bytes} bytes"),
        }
    }
}

pub(super) fn agent(options: &FetchOptions) -> Agent {
    let proxy = match options.proxy {
        ProxyChoice::Direct => None,
        ProxyChoice::FromEnvironment => Proxy::try_from_env(),
    };
    Agent::config_builder()
        // Some servers refuse the agents of well-known libraries.
        .user_agent(concat!("adaparam/", env!("CARGO_PKG_VERSION")))
        // A compressed transfer has neither the size nor the ranges of the file.
        .accept_encoding("identity")
        .proxy(proxy)
        .http_status_as_error(false)
        .timeout_resolve(Some(options.connect_timeout))
        .timeout_connect(Some(options.connect_timeout))
        .timeout_recv_response(Some(options.stall_timeout))
        .timeout_per_read(Some(options.stall_timeout))
        .build()
        .new_agent()
}

/// Why one connection did not finish the file.
enum Setback {
    /// Another connection may get further.
    Retry(String),
    /// The source has nothing to give.
    GiveUp(String),
    /// This machine is at fault.
    Local(DataError),
}

/// One address and the file that it fills.
pub(super) struct Download<'a> {
    pub(super) agent: &'a Agent,
    pub(super) options: &'a FetchOptions,
    pub(super) url: &'a str,
    pub(super) part: &'a Path,
    pub(super) size: Size,
}

impl Download<'_> {
    /// Completes the file, from where it ends if the server can; `on_progress` hears its length.
    ///
    /// Connections that break are taken up again as long as each brings something new; `attempts` in a row that
    /// do not are the source's failure. It leaves what has arrived, if anything has.
    pub(super) fn run(&self, on_progress: &mut dyn FnMut(u64)) -> Attempt<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.part)
            .map_err(DataError::io(self.part, "write"))?;
        let outcome = self.connect_until_done(&mut file, on_progress);
        if outcome.is_err() && length(&file).is_ok_and(|length| length == 0) {
            // An empty file is of no use, but of no harm either.
            let _ = fs::remove_file(self.part);
        }
        outcome
    }

    fn connect_until_done(&self, file: &mut File, on_progress: &mut dyn FnMut(u64)) -> Attempt<()> {
        let mut furthest = length(file).unwrap_or(0);
        let mut failures = 0;
        loop {
            let reason = match self.connect_once(file, on_progress) {
                Ok(()) => return Ok(()),
                Err(Setback::Local(error)) => return Err(Fault::Local(error)),
                Err(Setback::GiveUp(reason)) => return Err(Fault::Source(reason)),
                Err(Setback::Retry(reason)) => reason,
            };
            let reached = length(file).unwrap_or(0);
            if reached > furthest {
                furthest = reached;
                failures = 0;
            } else {
                failures += 1;
            }
            if failures >= self.options.attempts {
                return Err(Fault::Source(reason));
            }
            thread::sleep(self.options.pause);
        }
    }

    fn connect_once(
        &self,
        file: &mut File,
        on_progress: &mut dyn FnMut(u64),
    ) -> Result<(), Setback> {
        let mut offset = length(file).map_err(|fault| self.local(fault))?;
        if let Size::Exactly(expected) = self.size {
            if offset == expected {
                return Ok(());
            }
            if offset > expected {
                self.restart(file)?;
                offset = 0;
            }
        }

        let mut request = self.agent.get(self.url);
        if offset > 0 {
            request = request.header(header::RANGE, format!("bytes={offset}-"));
        }
        let response = request.call().map_err(|fault| match fault {
            ureq::Error::Io(_)
            | ureq::Error::Timeout(_)
            | ureq::Error::Protocol(_)
            | ureq::Error::ConnectionFailed => Setback::Retry(fault.to_string()),
            _ => Setback::GiveUp(fault.to_string()),
        })?;

        let range = ContentRange::of(response.headers());
        match response.status() {
            StatusCode::OK => {
                self.restart(file)?;
                offset = 0;
            }
            StatusCode::PARTIAL_CONTENT if offset > 0 => {
                let fits = |total| self.size.allows(total);
                if !range.is_some_and(|range| {
                    range.start == Some(offset) && range.total.is_none_or(fits)
                }) {
                    self.restart(file)?;
                    let reason = "the server continues at another place than asked";
                    return Err(Setback::Retry(reason.into()));
                }
            }
            StatusCode::RANGE_NOT_SATISFIABLE if offset > 0 => {
                let is_whole = range.is_some_and(|range| range.total == Some(offset));
                if is_whole && self.size.allows(offset) {
                    return Ok(());
                }
                self.restart(file)?;
                return Err(Setback::Retry("the server refuses to continue".into()));
            }
            status => {
                let reason = format!("the server answers {status}");
                let may_pass = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
                return Err(if may_pass {
                    Setback::Retry(reason)
                } else {
                    Setback::GiveUp(reason)
                });
            }
        }
        if let Some(announced) = response.body().content_length()
            && !self.size.allows(offset.saturating_add(announced))
        {
            return Err(Setback::GiveUp(format!(
                "the server announces {announced} bytes after the first {offset}, expected {}",
                self.size
            )));
        }
        self.receive(response.into_body(), file, offset, on_progress)
    }

    /// Writes the body from `offset` on.
    fn receive(
        &self,
        body: Body,
        file: &mut File,
        offset: u64,
        on_progress: &mut dyn FnMut(u64),
    ) -> Result<(), Setback> {
        let size = self.size;
        file.seek(SeekFrom::Start(offset))
            .map_err(|fault| self.local(fault))?;
        let mut reader = body.into_reader();
        let mut chunk = vec![0; 1 << 16];
        let mut length = offset;
        on_progress(length);
        loop {
            let count = reader.read(&mut chunk).map_err(|fault| {
                Setback::Retry(format!(
                    "the connection broke after {length} bytes: {fault}"
                ))
            })?;
            if count == 0 {
                break;
            }
            length += count as u64;
            if length > size.limit() {
                self.restart(file)?;
                return Err(Setback::GiveUp(format!(
                    "the server sends more than expected ({size})"
                )));
            }
            file.write_all(&chunk[..count])
                .map_err(|fault| self.local(fault))?;
            on_progress(length);
        }
        if size.allows(length) {
            return Ok(());
        }
        Err(Setback::Retry(format!(
            "the connection ended after {length} bytes, expected {size}"
        )))
    }

    fn restart(&self, file: &File) -> Result<(), Setback> {
        file.set_len(0).map_err(|fault| self.local(fault))
    }

    fn local(&self, fault: io::Error) -> Setback {
        Setback::Local(DataError::io(self.part, "write")(fault))
    }
}

fn length(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

/// The header `Content-Range: bytes start-end/total`, where start or total may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ContentRange {
    start: Option<u64>,
    total: Option<u64>,
}

impl ContentRange {
    fn of(headers: &HeaderMap) -> Option<Self> {
        Self::parse(headers.get(header::CONTENT_RANGE)?.to_str().ok()?)
    }

    fn parse(value: &str) -> Option<Self> {
        let (range, total) = value
            .trim()
            .strip_prefix("bytes ")?
            .trim()
            .split_once('/')?;
        let start = match range {
            "*" => None,
            range => {
                let (start, end) = range.split_once('-')?;
                let (start, end): (u64, u64) = (start.parse().ok()?, end.parse().ok()?);
                (start <= end).then_some(Some(start))?
            }
        };
        let total = match total {
            "*" => None,
            total => Some(total.parse().ok()?),
        };
        Some(Self { start, total })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_content_range_states_its_start_and_total() {
        let range = |start, total| Some(ContentRange { start, total });
        assert_eq!(
            ContentRange::parse("bytes 5-9/10"),
            range(Some(5), Some(10))
        );
        assert_eq!(ContentRange::parse("bytes 5-9/*"), range(Some(5), None));
        assert_eq!(ContentRange::parse("bytes */10"), range(None, Some(10)));
        for wrong in [
            "",
            "bytes",
            "bytes 5-9",
            "bytes 9-5/10",
            "bytes -9/10",
            "lines 5-9/10",
        ] {
            assert_eq!(ContentRange::parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_content_ranges_never_panic(value in "(bytes )?[0-9*/ -]{0,40}") {
            let _ = ContentRange::parse(&value);
        }
    }
}
