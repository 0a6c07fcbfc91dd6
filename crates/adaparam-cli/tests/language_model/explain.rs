//! `adaparam explain` without a browser.

use std::fs;

use serde_json::Value;

use crate::tiny_run::TinyRun;

#[test]
fn a_page_needs_nothing_else_and_json_has_every_number() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "run", "--quiet"]);
    tiny.done(&["explain", "run", "--prompt", "the whale sees"]);
    let page = fs::read_to_string(tiny.path("run/explain.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.len() < 400_000);
    for elsewhere in ["src=", "@import", "url(", "<link rel=\"stylesheet"] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    let told = tiny.done(&["explain", "run", "--prompt", "the whale sees", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    let run = &told["runs"][0];
    assert_eq!(run["words"].as_array().unwrap().len(), 4);
    // What `eval --tokens` says of the same words, but for the end of the line.
    tiny.write("line.txt", "the whale sees\n");
    let tokens = tiny.done(&["eval", "run", "--text", "line.txt", "--tokens", "--quiet"]);
    let last: Vec<&str> = tokens.lines().collect();
    assert!(!last.is_empty(), "{tokens}");
    // A text that is longer than is read says so, and a file may hold it.
    let cut = tiny.done(&[
        "explain",
        "run",
        "--text",
        "line.txt",
        "--max-words",
        "2",
        "--json",
    ]);
    let cut: Value = serde_json::from_str(&cut).unwrap();
    assert_eq!(cut["runs"][0]["cut"], true);
}

#[test]
fn what_cannot_be_explained_is_refused_and_nothing_is_written() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "run", "--quiet"]);
    tiny.done(&["export", "run", "model.safetensors"]);
    let refused = |arguments: &[&str], word: &str| {
        let message = tiny.refused(arguments);
        assert!(message.contains(word), "{arguments:?}: {message}");
    };
    refused(&["explain", "run"], "--text");
    refused(
        &["explain", "no-run", "--prompt", "a"],
        "no-run: there is no such file or folder",
    );
    refused(
        &["explain", "run", "--prompt", "a", "--out", "page.txt"],
        ".html",
    );
    refused(
        &["explain", "no-run", "--prompt", "a", "--out", "page.html"],
        "no such file or folder",
    );
    refused(&["explain", "model.safetensors", "--prompt", "a"], "--out");
    refused(
        &["explain", "run", "--text", "no.txt", "--out", "page.html"],
        "no.txt",
    );
    refused(&["serve", "no-run"], "no such file or folder");
    refused(&["serve", "run", "--host", "0.0.0.0"], "--host 0.0.0.0");
    fs::create_dir(tiny.path("empty")).unwrap();
    refused(&["serve", "empty"], "holds no run");
    assert!(!tiny.path("page.html").exists() && !tiny.path("page.txt").exists());
    // A file does not choose which texts are read: without its text there are no means, and that is said.
    let output = tiny.run(&[
        "explain",
        "model.safetensors",
        "--prompt",
        "the whale",
        "--out",
        "page.html",
    ]);
    assert!(output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("without means and neighbours"), "{told}");
    assert!(
        fs::read_to_string(tiny.path("page.html"))
            .unwrap()
            .contains("\"corpus\":null")
    );
}

#[test]
#[cfg(unix)]
fn a_page_is_served_while_the_opener_still_waits_for_its_browser() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::process::Stdio;

    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "run", "--quiet"]);
    let opener = tiny.path(if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    });
    fs::write(&opener, "#!/bin/sh\nsleep 25\n").unwrap();
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut serving = tiny
        .command(&["serve", "run", "--no-corpus", "--open"])
        .env("PATH", format!("{}:{path}", tiny.path("").display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut url = String::new();
    let mut out = BufReader::new(serving.stdout.take().unwrap());
    out.read_line(&mut url).unwrap();
    let (address, rest) = url["http://".len()..].trim().split_once('/').unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let patience = std::time::Duration::from_secs(20);
    stream.set_read_timeout(Some(patience)).unwrap();
    write!(stream, "GET /{rest} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = [0; 15];
    let read = stream.read_exact(&mut answer);
    serving.kill().unwrap();
    serving.wait().unwrap();
    read.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
}
