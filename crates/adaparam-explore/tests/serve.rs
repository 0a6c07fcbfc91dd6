//! The server and its rules, through real sockets.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use adaparam_explore::serve::{Live, Looked, Server};
use adaparam_explore::{Curves, Explorer};
use adaparam_lm::Machine;
use serde_json::{Value, json};
use support::model;

/// A server of a small model, while `test` asks it.
fn served(test: impl FnOnce(&Asker)) {
    let folder = tempfile::tempdir().unwrap();
    let (model, machine) = (model(&folder, "adaptive-lstm"), Machine::cpu(1));
    let run = folder.path().join("run");
    std::fs::create_dir(&run).unwrap();
    std::fs::write(run.join("config.toml"), "[train]\nepochs = 3\n").unwrap();
    std::fs::write(
        run.join("metrics.jsonl"),
        "{\"epoch\":1,\"step\":1,\"loss\":2.5}\n",
    )
    .unwrap();
    let looked = Looked::new(Explorer::new(&model, &machine), &machine);
    let live = Live::new("title", vec![looked], Curves::of(vec![run]), "the sea");
    let server = Server::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = server.url();
    let rest = url.strip_prefix("http://").unwrap();
    let (address, token) = rest.trim_end_matches('/').split_once('/').unwrap();
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let asker = Asker {
        address: address.parse().unwrap(),
        token: token.to_owned(),
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| server.run(&live, &stop));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&asker)));
        stop.store(true, Ordering::Relaxed);
        running.join().unwrap();
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

struct Asker {
    address: SocketAddr,
    token: String,
}

impl Asker {
    /// What is answered to these bytes, as text.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str) -> String {
        self.raw(
            format!(
                "GET /{}/{path} HTTP/1.1\r\nHost: {}\r\n\r\n",
                self.token, self.address
            )
            .as_bytes(),
        )
    }

    fn post(&self, path: &str, body: &str) -> String {
        let (token, host, length) = (&self.token, self.address, body.len());
        self.raw(format!("POST /{token}/{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes())
    }
}

fn status(answer: &str) -> u16 {
    let code = answer
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3));
    code.and_then(|code| code.parse().ok()).unwrap_or(0)
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

#[test]
fn a_page_comes_to_those_who_know_the_token_and_the_name() {
    served(|asker| {
        let page = asker.get("");
        assert_eq!(status(&page), 200);
        assert!(page.contains("connect-src &#39;self&#39;") || page.contains("connect-src 'self'"));
        let (address, token) = (asker.address, &asker.token);
        let with = |line: &str, path: &str| {
            status(&asker.raw(format!("GET {path} HTTP/1.1\r\n{line}\r\n\r\n").as_bytes()))
        };
        assert_eq!(with(&format!("Host: {address}"), "/"), 404);
        assert_eq!(
            with(
                &format!("Host: {address}"),
                "/00000000000000000000000000000000/"
            ),
            404
        );
        assert_eq!(
            with(
                &format!("Host: evil.example:{}", address.port()),
                &format!("/{token}/")
            ),
            421
        );
        assert_eq!(with("Accept: */*", &format!("/{token}/")), 400);
        let other = format!("Host: {address}\r\nOrigin: http://evil.example");
        assert_eq!(with(&other, &format!("/{token}/")), 403);
        // Nothing of the answer tells the token.
        let refused = asker.raw(format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes());
        assert!(!refused.contains(token.as_str()));
    });
}

#[test]
fn no_file_is_read_by_its_name() {
    served(|asker| {
        for path in [
            "../config.toml",
            "config.toml",
            "../../../../etc/passwd",
            "%2e%2e/%2e%2e/etc/passwd",
            "/etc/passwd",
            "..%5c..%5cwindows",
            "run/metrics.jsonl",
            "explain/../../etc/passwd",
            "\0",
            "file:///etc/passwd",
            "explain",
        ] {
            let answer = asker.get(path);
            assert!(matches!(status(&answer), 404 | 400), "{path}: {answer}");
            assert!(
                !answer.contains("root:") && !answer.contains("epochs"),
                "{path}"
            );
        }
    });
}

#[test]
fn texts_are_explained_and_what_is_not_understood_is_refused() {
    served(|asker| {
        let answer = asker.post(
            "explain",
            &json!({"text": "the whale </script> sees"}).to_string(),
        );
        assert_eq!(status(&answer), 200);
        let told: Value = serde_json::from_str(body(&answer)).unwrap();
        assert_eq!(told["runs"][0]["words"].as_array().unwrap().len(), 5);
        assert!(answer.contains("Content-Type: application/json") && answer.contains("nosniff"));
        for (path, posted) in [
            ("explain", "{}".to_owned()),
            ("explain", "[".repeat(10_000)),
            ("explain", "{\"text\":1}".to_owned()),
            (
                "explain",
                "{\"text\":\"a\",\"file\":\"/etc/passwd\"}".to_owned(),
            ),
            ("explain", String::new()),
            (
                "alike",
                json!({"text": "the", "run": 9, "layer": 0, "from": 0, "to": 0}).to_string(),
            ),
            (
                "alike",
                json!({"text": "the", "run": 0, "layer": 0, "from": 1, "to": 99}).to_string(),
            ),
            (
                "alike",
                json!({"text": "the", "run": 0, "layer": 0, "from": 1, "to": 0}).to_string(),
            ),
            (
                "alike",
                json!({"text": "the", "run": 0, "layer": 0, "from": -1, "to": 0}).to_string(),
            ),
        ] {
            assert_eq!(
                status(&asker.post(path, &posted)),
                400,
                "{path}: {posted:.60}"
            );
        }
        // Layers that are not there have nothing alike.
        let none = asker.post(
            "alike",
            &json!({"text": "the", "run": 0, "layer": 5, "from": 0, "to": 0}).to_string(),
        );
        assert_eq!(body(&none), "null");
        // A text of any length is read up to its bound.
        let long = asker.post(
            "explain",
            &json!({"text": "sea ".repeat(10_000)}).to_string(),
        );
        let told: Value = serde_json::from_str(body(&long)).unwrap();
        assert_eq!(told["runs"][0]["words"].as_array().unwrap().len(), 201);
        assert_eq!(told["runs"][0]["cut"], true);
    });
}

#[test]
fn text_is_drawn_a_word_at_a_time() {
    served(|asker| {
        let asked = |words: usize, temperature: f64| {
            json!({"text": "the", "run": 0, "words": words, "temperature": temperature, "top_k": 3, "seed": 1}).to_string()
        };
        let answer = asker.post("generate", &asked(7, 0.8));
        assert!(answer.contains("text/event-stream"));
        let events: Vec<Value> = body(&answer)
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(events.len(), 8);
        assert_eq!(events[7], json!({"end": true}));
        assert_eq!(
            answer,
            asker.post("generate", &asked(7, 0.8)),
            "the same seed, the same text"
        );
        assert_eq!(status(&asker.post("generate", &asked(0, 1.0))), 400);
        assert_eq!(status(&asker.post("generate", &asked(100_000, 1.0))), 400);
        assert_eq!(status(&asker.post("generate", &asked(1, -1.0))), 400);
    });
}

#[test]
fn curves_are_sent_as_they_are() {
    served(|asker| {
        let mut stream = TcpStream::connect(asker.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        write!(
            stream,
            "GET /{}/curves HTTP/1.1\r\nHost: {}\r\n\r\n",
            asker.token, asker.address
        )
        .unwrap();
        let mut seen = Vec::new();
        let mut buffer = [0; 1024];
        while !String::from_utf8_lossy(&seen).contains("\n\n") {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0);
            seen.extend_from_slice(&buffer[..count]);
        }
        let text = String::from_utf8_lossy(&seen);
        let event = text
            .lines()
            .find_map(|line| line.strip_prefix("data: "))
            .unwrap();
        let told: Value = serde_json::from_str(event).unwrap();
        assert_eq!(told["runs"][0]["steps"], json!([[1, 2.5]]));
    });
}

#[test]
fn a_request_that_is_too_long_is_told_so_while_it_is_still_sent() {
    served(|asker| {
        let (token, host) = (&asker.token, asker.address);
        let head = format!(
            "POST /{token}/explain HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5000000\r\n\r\n"
        );
        let mut bytes = head.into_bytes();
        bytes.resize(bytes.len() + 5_000_000, b'a');
        assert_eq!(status(&asker.raw(&bytes)), 413);
        let mut bytes = format!("GET /{token}/ HTTP/1.1\r\nHost: {host}\r\nA: ").into_bytes();
        bytes.resize(1_000_000, b'a');
        assert_eq!(status(&asker.raw(&bytes)), 431);
    });
}

#[test]
fn more_connections_than_there_are_places_are_turned_away_and_places_come_back() {
    served(|asker| {
        let connect = || TcpStream::connect(asker.address).unwrap();
        let silent: Vec<TcpStream> = (0..24).map(|_| connect()).collect();
        // They are taken in the order in which they came.
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(status(&asker.get("")), 503);
        drop(silent);
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(status(&asker.get("")), 200);
    });
}

#[test]
fn nobody_waits_at_the_end_for_a_connection_that_says_nothing() {
    let started = std::cell::Cell::new(Instant::now());
    let silent = std::cell::OnceCell::new();
    served(|asker| {
        silent.set(TcpStream::connect(asker.address).unwrap()).ok();
        std::thread::sleep(Duration::from_millis(200));
        started.set(Instant::now());
    });
    // A request may take ten seconds to come.
    assert!(started.get().elapsed() < Duration::from_secs(5));
}

#[test]
fn whatever_is_sent_the_server_goes_on() {
    served(|asker| {
        let mut state = 7_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        let whole = format!(
            "POST /{}/explain HTTP/1.1\r\nHost: {}\r\nContent-Length: 14\r\n\r\n{{\"text\":\"the\"}}",
            asker.token, asker.address
        );
        for round in 0..40 {
            let mut bytes = whole.clone().into_bytes();
            if round % 4 == 0 {
                bytes = (0..random() % 3_000).map(|_| random() as u8).collect();
            }
            for _ in 0..=(random() % 5) {
                if bytes.is_empty() {
                    break;
                }
                let at = random() as usize % bytes.len();
                match random() % 3 {
                    0 => bytes[at] = random() as u8,
                    1 => bytes.truncate(at),
                    _ => bytes.insert(at, random() as u8),
                }
            }
            let answer = asker.raw(&bytes);
            assert!(answer.is_empty() || status(&answer) > 0, "{answer:.200}");
        }
        // More than the rate allows is put off, not answered and not a fault.
        let codes: Vec<u16> = (0..80).map(|_| status(&asker.get(""))).collect();
        assert!(
            codes.iter().all(|code| [200, 429].contains(code)),
            "{codes:?}"
        );
        std::thread::sleep(Duration::from_millis(1_500));
        assert_eq!(status(&asker.get("")), 200);
    });
}
