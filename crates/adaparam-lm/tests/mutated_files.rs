//! Files of models and sweeps with bytes changed, cut off and put in: readers say what is wrong, and never panic.

use adaparam_data::text::{Text, Vocabulary};
use adaparam_lm::sweep::{Manifest, RunSpec};
use adaparam_lm::{FileNote, LanguageModelConfig, Snapshot, TensorFile, adopt, checkpoint, export};
use proptest::prelude::*;

fn small() -> LanguageModelConfig {
    let text = "[model]\nembedding = 3\nhidden = 4\n[model.cell]\nlatent = 2\n[train]\nbatch = 2\nwindow = 5\n";
    LanguageModelConfig::parse("small.toml", text).unwrap()
}

fn snapshot() -> Snapshot {
    let config = small();
    let text = Text::from_bytes("t".as_ref(), b"a b c\nb <unk>\n".to_vec()).unwrap();
    let vocabulary = Vocabulary::new(config.data.tokens, &text, 1);
    Snapshot::new(config, vocabulary, "sum".to_owned())
}

/// Bytes at some places of a file are replaced by others; numbers among them become large or nothing more often than
/// chance would have it.
fn changed(file: &[u8], changes: &[(f64, u8, usize)]) -> Vec<u8> {
    let tokens: [&[u8]; 10] = [
        b"0",
        b"-1",
        b"18446744073709551615",
        b"1e999",
        b"null",
        b"{}",
        b"[",
        b"\"",
        b"99",
        b"",
    ];
    let mut file = file.to_vec();
    for &(at, bit, token) in changes {
        let at = (at * file.len() as f64) as usize;
        match token {
            0..=9 => {
                let digits = file[at..]
                    .iter()
                    .position(u8::is_ascii_digit)
                    .map(|by| at + by);
                if let Some(at) = digits {
                    let length = file[at..]
                        .iter()
                        .take_while(|byte| byte.is_ascii_digit())
                        .count();
                    file.splice(at..at + length, tokens[token].iter().copied());
                }
            }
            10 => file.truncate(at),
            _ => {
                if let Some(byte) = file.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
        }
    }
    file
}

fn changes() -> impl Strategy<Value = Vec<(f64, u8, usize)>> {
    proptest::collection::vec((0.0..1.0, 0_u8..8, 0_usize..20), 1..5)
}

/// Opens what an exported file holds.
fn opened(bytes: &[u8]) -> bool {
    let Ok(file) = TensorFile::parse("x".as_ref(), bytes) else {
        return false;
    };
    let Ok(Some(note)) = FileNote::of("x".as_ref(), file.note.as_deref()) else {
        return false;
    };
    adopt(
        "x".as_ref(),
        file,
        note.config,
        note.vocabulary,
        note.corpus,
    )
    .is_ok()
}

fn head() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let saved = checkpoint::save(folder.path(), &snapshot()).unwrap();
    std::fs::read(saved.join("checkpoint.json")).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn exported_files(changes in changes()) {
        let file = export(&snapshot());
        let bytes = file.to_bytes();
        prop_assert!(opened(&bytes));
        let other = changed(&bytes, &changes);
        prop_assert!(other == bytes || !opened(&other));
        // Somebody who changes the note on purpose gives it a new sum.
        let note = changed(file.note.as_ref().unwrap().as_bytes(), &changes);
        let mut meant = file;
        meant.note = Some(String::from_utf8_lossy(&note).into_owned());
        let _ = opened(&meant.to_bytes());
    }

    #[test]
    fn heads_of_checkpoints(changes in changes()) {
        let head = head();
        prop_assert!(checkpoint::read_head("x".as_ref(), &head).is_ok());
        if let Ok((config, counters)) = checkpoint::read_head("x".as_ref(), &changed(&head, &changes)) {
            let _ = (config.model.parameter_count(10), counters.name());
        }
    }

    #[test]
    fn configurations(changes in changes()) {
        let text = toml::to_string(&small()).unwrap();
        let text = changed(text.as_bytes(), &changes);
        if let Ok(config) = LanguageModelConfig::parse("x", &String::from_utf8_lossy(&text))
            && config.check().is_ok()
        {
            let _ = config.model.parameter_count(10);
        }
    }

    #[test]
    fn manifests(changes in changes()) {
        let run = RunSpec::new("a", "row", "Row", None, small());
        let text = Manifest::new("experiment", "small", vec![run]).to_text();
        prop_assert!(Manifest::parse("x", &text).is_ok());
        let other = changed(text.as_bytes(), &changes);
        let _ = Manifest::parse("x", &String::from_utf8_lossy(&other));
    }
}
