//! Files of every kind with bytes changed, cut off, doubled and put in: readers say what is wrong, and never panic.
//!
//! `fuzz/` does the same with a fuzzer that looks for new ways through the readers.

use std::io::{Cursor, Write};

use adaparam_data::fetch::unpack;
use adaparam_data::idx::{parse_images, parse_labels};
use adaparam_data::registry::ArchiveFormat;
use adaparam_data::text::{Corpus, Text, TextSplit, Tokens, Vocabulary};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

/// One change of a file: where, as a share of its length, and what.
#[derive(Debug, Clone)]
enum Change {
    Flip(f64, u8),
    Cut(f64),
    Insert(f64, Vec<u8>),
    Double(f64, f64),
    Zero(f64),
}

fn change() -> impl Strategy<Value = Change> {
    let place = || 0.0..1.0;
    prop_oneof![
        4 => (place(), 0_u8..8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        1 => place().prop_map(Change::Cut),
        2 => (place(), proptest::collection::vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        1 => (place(), place()).prop_map(|(from, to)| Change::Double(from, to)),
        1 => place().prop_map(Change::Zero),
    ]
}

fn changed(file: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut file = file.to_vec();
    for change in changes {
        let place = |at: f64| (at * file.len() as f64) as usize;
        match change {
            Change::Flip(at, bit) => {
                let at = place(*at);
                if let Some(byte) = file.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
            Change::Cut(at) => {
                let at = place(*at);
                file.truncate(at);
            }
            Change::Insert(at, bytes) => {
                let at = place(*at);
                file.splice(at..at, bytes.iter().copied());
            }
            Change::Double(from, to) => {
                let (from, to) = (place(from.min(*to)), place(from.max(*to)));
                let part = file[from..to].to_vec();
                file.splice(to..to, part);
            }
            Change::Zero(at) => {
                let at = place(*at);
                file.iter_mut().skip(at).take(8).for_each(|byte| *byte = 0);
            }
        }
    }
    file
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    proptest::collection::vec(change(), 1..6)
}

fn images() -> Vec<u8> {
    let mut file = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2];
    file.extend(0..12);
    file
}

fn gzipped(content: &[u8]) -> Vec<u8> {
    let mut file = GzEncoder::new(Vec::new(), Compression::default());
    file.write_all(content).unwrap();
    file.finish().unwrap()
}

fn tar_gz(change: &[Change]) -> (Vec<u8>, Vec<u8>) {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in [("b.txt", "other words"), ("a.txt", "some words\n")] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_cksum();
        archive
            .append_data(&mut header, name, content.as_bytes())
            .unwrap();
    }
    let plain = archive.into_inner().unwrap();
    (gzipped(&plain), gzipped(&changed(&plain, change)))
}

fn zipped() -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in [("b.txt", "other words"), ("a.txt", "some words\n")] {
        let options = zip::write::SimpleFileOptions::default();
        archive.start_file(name, options).unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn the_files_that_are_changed_here_are_right_before() {
    assert_eq!(
        parse_images("x".as_ref(), images().as_slice())
            .unwrap()
            .count,
        2
    );
    assert_eq!(
        parse_images("x".as_ref(), gzipped(&images()).as_slice())
            .unwrap()
            .count,
        2
    );
    for (file, format) in [
        (zipped(), ArchiveFormat::Zip),
        (tar_gz(&[]).0, ArchiveFormat::TarGz),
    ] {
        let content = unpack(Cursor::new(file), format, "a.txt", 100).unwrap();
        assert_eq!(content, b"some words\n");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn images_and_labels(changes in changes()) {
        for file in [changed(&images(), &changes), changed(&gzipped(&images()), &changes), gzipped(&changed(&images(), &changes))] {
            if let Ok(images) = parse_images("x".as_ref(), file.as_slice()) {
                prop_assert_eq!(images.pixels.len(), images.count * images.rows * images.columns);
            }
            let _ = parse_labels("x".as_ref(), file.as_slice());
        }
    }

    #[test]
    fn archives(changes in changes()) {
        let (tar, tar_inside) = tar_gz(&changes);
        for (file, format) in [
            (changed(&zipped(), &changes), ArchiveFormat::Zip),
            (changed(&tar, &changes), ArchiveFormat::TarGz),
            (tar_inside, ArchiveFormat::TarGz),
        ] {
            if let Ok(content) = unpack(Cursor::new(file), format, "a.txt", 100) {
                prop_assert!(content.len() <= 101);
            }
        }
    }

    #[test]
    fn texts_and_vocabularies(changes in changes()) {
        let original = "the whale\nl'été 床前 \u{1b}[0m\n\nthe end\n";
        for tokens in Tokens::all() {
            let Ok(text) = Text::from_bytes("x".as_ref(), changed(original.as_bytes(), &changes)) else {
                continue;
            };
            let vocabulary = Vocabulary::new(tokens, &text, 1);
            let ids = vocabulary.encode(&text).unwrap();
            prop_assert!(ids.iter().all(|&id| (id as usize) < vocabulary.len()));
            let file = vocabulary.to_text();
            prop_assert_eq!(&Vocabulary::parse("x".as_ref(), &file).unwrap(), &vocabulary);
            let damaged = changed(file.as_bytes(), &changes);
            if let Ok(other) = Vocabulary::parse("x".as_ref(), &String::from_utf8_lossy(&damaged)) {
                for id in 0..other.len() as u32 {
                    let _ = other.spelling(id, Some(other.line_end()));
                }
            }
            if let Ok(texts) = TextSplit::cut(tokens, &text, 0.2, 0.2) {
                let _ = Corpus::new(tokens, &texts, 2);
            }
        }
    }
}
