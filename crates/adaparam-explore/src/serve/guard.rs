//! Who is answered: those who know the token and speak to this server by its own name, and not too often.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::http::{Refusal, Request};

/// Requests in a second, on average.
const RATE: f64 = 30.0;
/// Requests that may come at once.
const BURST: f64 = 60.0;

/// The port that goes without saying.
const HTTP: u16 = 80;

/// The rules.
#[derive(Debug)]
pub(crate) struct Guard {
    token: String,
    /// Names by which browsers may speak to this server.
    hosts: Vec<String>,
    /// What is left of the requests that may come, and when that was.
    left: Mutex<(f64, Instant)>,
}

impl Guard {
    /// The rules of a server at an address. A browser that names another one was led here by somebody else's name server.
    pub(crate) fn new(address: SocketAddr, token: String) -> Self {
        let port = address.port();
        let mut hosts = vec![address.to_string()];
        if address.ip().is_loopback() {
            hosts.extend(["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}")));
        }
        if port == HTTP {
            // Browsers do not tell the port that everybody knows.
            let named = |host: &String| host.strip_suffix(":80").map(str::to_owned);
            let bare: Vec<String> = hosts.iter().filter_map(named).collect();
            hosts.extend(bare);
        }
        Self {
            token,
            hosts,
            left: Mutex::new((BURST, Instant::now())),
        }
    }

    /// What is asked for behind the token, if all rules are kept.
    pub(crate) fn admit<'r>(&self, request: &'r Request) -> Result<&'r str, Refusal> {
        if !self.has_turn(Instant::now()) {
            return Err(Refusal::new(429, "too many requests: wait a moment"));
        }
        if !self.hosts.contains(&request.host) {
            return Err(Refusal::new(421, "this server has another name"));
        }
        let is_own = |origin: &str| {
            let host = origin.strip_prefix("http://");
            host.is_some_and(|host| self.hosts.iter().any(|own| own == host))
        };
        if !request.origin.as_deref().is_none_or(is_own) {
            return Err(Refusal::new(403, "other pages may not ask"));
        }
        let unknown = Refusal::new(
            404,
            "there is nothing here: open the address that the command has told",
        );
        let (token, rest) = request.path[1..].split_once('/').ok_or(unknown)?;
        if same(token.as_bytes(), self.token.as_bytes()) {
            Ok(rest)
        } else {
            Err(unknown)
        }
    }

    fn has_turn(&self, now: Instant) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (turns, before) = *left;
        let passed = now.saturating_duration_since(before).as_secs_f64();
        let turns = (turns + passed * RATE).min(BURST);
        let has_turn = turns >= 1.0;
        *left = (if has_turn { turns - 1.0 } else { turns }, now);
        has_turn
    }
}

/// Whether two texts are the same, in a time that does not tell where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
    a.len() == b.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn guard() -> Guard {
        Guard::new("127.0.0.1:8000".parse().unwrap(), "secret".to_owned())
    }

    fn request(host: &str, path: &str, origin: Option<&str>) -> Request {
        Request {
            is_post: false,
            path: path.to_owned(),
            host: host.to_owned(),
            origin: origin.map(str::to_owned),
            body: Vec::new(),
        }
    }

    #[test]
    fn only_the_own_names_the_token_and_the_own_pages_are_answered() {
        let guard = guard();
        let status = |host, path, origin| {
            guard
                .admit(&request(host, path, origin))
                .map_err(|it| it.status)
                .map(str::to_owned)
        };
        assert_eq!(
            status("127.0.0.1:8000", "/secret/", None),
            Ok(String::new())
        );
        assert_eq!(
            status("localhost:8000", "/secret/a", Some("http://localhost:8000")),
            Ok("a".to_owned())
        );
        assert_eq!(status("[::1]:8000", "/secret/", None), Ok(String::new()));
        for host in [
            "evil.example",
            "evil.example:8000",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost.evil.example:8000",
            "",
        ] {
            assert_eq!(status(host, "/secret/", None), Err(421), "{host}");
        }
        for origin in [
            "http://evil.example",
            "null",
            "https://127.0.0.1:8000",
            "http://127.0.0.1:8001",
        ] {
            assert_eq!(
                status("127.0.0.1:8000", "/secret/", Some(origin)),
                Err(403),
                "{origin}"
            );
        }
        for path in [
            "/",
            "/secret",
            "/secre/",
            "/secrets/",
            "//secret/",
            "/SECRET/",
            "/../secret/",
        ] {
            assert_eq!(status("127.0.0.1:8000", path, None), Err(404), "{path}");
        }
    }

    #[test]
    fn a_server_for_others_knows_its_address_only() {
        let guard = Guard::new("10.0.0.1:8000".parse().unwrap(), "t".to_owned());
        assert!(guard.admit(&request("10.0.0.1:8000", "/t/", None)).is_ok());
        assert!(
            guard
                .admit(&request("localhost:8000", "/t/", None))
                .is_err()
        );
    }

    #[test]
    fn the_port_of_http_goes_without_saying() {
        let guard = Guard::new("127.0.0.1:80".parse().unwrap(), "t".to_owned());
        for host in ["127.0.0.1", "127.0.0.1:80", "localhost"] {
            let origin = format!("http://{host}");
            assert!(guard.admit(&request(host, "/t/", Some(&origin))).is_ok());
        }
        let other = request("evil.example", "/t/", None);
        assert_eq!(guard.admit(&other).unwrap_err().status, 421);
    }

    #[test]
    fn requests_are_answered_as_often_as_the_rate_allows() {
        let (guard, start) = (guard(), Instant::now());
        let answered = (0..200).filter(|_| guard.has_turn(start)).count();
        assert_eq!(answered, BURST as usize);
        let later = start + Duration::from_millis(500);
        let answered = (0..200).filter(|_| guard.has_turn(later)).count();
        assert_eq!(answered, (RATE / 2.0) as usize);
        // A clock that goes back gives nothing.
        assert!(!guard.has_turn(start));
    }
}
